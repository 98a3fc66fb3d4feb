//! Workloads of training in the text form of ASTRA-sim, with the header that AICB and SimAI write.
//!
//! ```text
//! HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 8 ep: 1 pp: 1 vpp: 1 ga: 1 all_gpus: 16 checkpoints: 0 …
//! 1
//! embedding  -1  556000 ALLREDUCE 16777216  1 NONE 0  1 ALLREDUCE_DP_EP 4096  100
//! name            forward: time ns,         of the    of the                  update time
//!                 collective, bytes         inputs    weights
//! ```
//!
//! A pass is done as ASTRA-sim does it (its `Workload.cc`, loop of transformers with "forward in backward"):
//!
//! ```text
//! forward    each layer: wait for its weights of the pass before ─► compute ─► collective ─► next layer
//! backward   each layer, last first: [forward again from the checkpoint] ─► gradients of inputs, collective
//!                                    ─► gradients of weights, collective in the background ─► next layer
//! ```
//!
//! After each collective of a layer its update time passes on the accelerator. Groups are those of Megatron-LM: of neighbouring
//! ranks, TP first; then, by TP rank, replicas of which `ep` in a row are an expert group (EP) and those in equal places of
//! these are replicas of experts (DP_EP); then stages. A collective without suffix is of the TP group, of the weights of the DP
//! group. Sizes are of the whole, as those of nccl-tests. The columns `dependency` and the header's `vpp`, `ga` and `pp_comm`
//! change nothing, in ASTRA-sim neither: micro-batches are layers of the text, and every stage does the same.

use std::path::{Path, PathBuf};

use softfabric_units::{Bytes, Span};

use super::wrong;
use crate::import::{ImportError, Word, Words};
use crate::job::collective::{self, Collective};
use crate::job::numbered;
use crate::job::{Frontier, JobBuilder, Slicing};

/// The only loop that is read: those of other models wait for other things.
const LOOP: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD";

/// A workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Its file, for messages.
    pub file: PathBuf,
    /// How its ranks are grouped.
    pub layout: Layout,
    /// What is computed and communicated, in the order of the forward pass.
    pub layers: Vec<Layer>,
}

/// How ranks are grouped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// All ranks.
    pub gpus: u32,
    /// Ranks that share each layer.
    pub tensor: u32,
    /// Replicas that share experts.
    pub expert: u32,
    /// Stages, each of which does the same.
    pub stages: u32,
}

/// A layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Its name.
    pub name: String,
    /// Its line in the file.
    pub line: u32,
    /// Forward.
    pub forward: Pass,
    /// Backward, the gradients of its inputs.
    pub inputs: Pass,
    /// Backward, the gradients of its weights.
    pub weights: Pass,
    /// What passes after each of its collectives.
    pub update: Span,
    /// Its inputs are kept: layers after it are computed forward again from here on.
    pub checkpoint: bool,
    /// Before its way back, the layers from the checkpoint on are computed forward again.
    pub recomputes: bool,
}

/// What a layer does on one of its ways.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// How long it computes.
    pub compute: Span,
    /// What is communicated then.
    pub exchange: Option<Exchange>,
}

/// A collective of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Which one.
    pub collective: Collective,
    /// Who takes part.
    pub group: Group,
    /// How much, in the sense of nccl-tests.
    pub bytes: Bytes,
}

/// Who takes part in a collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Ranks that share each layer.
    Tensor,
    /// Replicas.
    Data,
    /// Replicas that share experts.
    Expert,
    /// Replicas of the same experts.
    ExpertData,
}

/// Whether a text begins as a workload does: with the name of one of ASTRA-sim's loops.
pub(super) fn begins(text: &str) -> bool {
    let first = text.split_whitespace().next().unwrap_or_default();
    first.starts_with("HYBRID_") || ["DATA", "MODEL", "MICRO", "DLRM"].contains(&first)
}

/// Reads a workload.
///
/// # Errors
/// If the header, a layer or a collective is none that ASTRA-sim knows, or groups do not divide the ranks.
pub fn read(file: &Path, text: &str) -> Result<Workload, ImportError> {
    let mut words = Words::new(file, text);
    let first = words.take("the parallelism", LOOP)?;
    if first.text != LOOP {
        let found = format!("`{}`", first.text);
        return Err(at(&words, first, "the parallelism", found, LOOP));
    }
    let header = header(&mut words, first)?;
    let count: u32 = words.read("the number of layers", "a whole number")?;
    let mut layers = Vec::new();
    for place in 0..count {
        let mut layer = layer(&mut words)?;
        layer.checkpoint = header.checkpoints.contains(&place);
        layer.recomputes = header.initiates.contains(&place);
        layers.push(layer);
    }
    words.end("the last layer")?;
    for &place in header.checkpoints.iter().chain(&header.initiates) {
        if place >= count {
            let allowed = format!("0 to {}", count.saturating_sub(1));
            let field = "the layer of a checkpoint";
            return Err(at(&words, first, field, place.to_string(), &allowed));
        }
    }
    for &place in &header.initiates {
        if !header
            .checkpoints
            .iter()
            .any(|checkpoint| *checkpoint <= place)
        {
            let allowed = "a layer with a checkpoint at it or before it";
            let found = format!("{place}, without a checkpoint before it");
            return Err(at(&words, first, "checkpoint_initiates", found, allowed));
        }
    }
    let layout = header.layout;
    layout
        .check()
        .map_err(|(field, found, allowed)| at(&words, first, field, found, &allowed))?;
    Ok(Workload {
        file: file.to_owned(),
        layout,
        layers,
    })
}

fn at(words: &Words<'_>, word: Word<'_>, field: &str, found: String, allowed: &str) -> ImportError {
    wrong(words.file, Some(word.line as u32), field, found, allowed)
}

struct Header {
    layout: Layout,
    checkpoints: Vec<u32>,
    initiates: Vec<u32>,
}

/// The header after its first word: names and numbers on one line.
fn header(words: &mut Words<'_>, first: Word<'_>) -> Result<Header, ImportError> {
    let (mut tensor, mut expert, mut stages, mut gpus) = (None, 1, 1, None);
    let mut checkpoints = Vec::new();
    let mut initiates = Vec::new();
    while let Some(word) = words.peek().filter(|word| word.line == first.line) {
        let name = words.take("the header", "a name")?.text;
        let field = name.trim_end_matches(':');
        if let "checkpoints" | "checkpoint_initiates" = field {
            let count: u32 = words.read(field, "a whole number")?;
            let list = match field {
                "checkpoints" => &mut checkpoints,
                _ => &mut initiates,
            };
            for _ in 0..count {
                list.push(words.read(&format!("a layer of {field}"), "a whole number")?);
            }
            continue;
        }
        let value: u64 = words.read(field, "a whole number")?;
        let size = || {
            let found = value.to_string();
            let allowed = "a whole number from 1 to 1048576";
            match value {
                1..=1_048_576 => Ok(value as u32),
                _ => Err(at(words, word, field, found, allowed)),
            }
        };
        match field {
            "model_parallel_NPU_group" => tensor = Some(size()?),
            "ep" => expert = size()?,
            "pp" => stages = size()?,
            "all_gpus" => gpus = Some(size()?),
            "vpp" | "ga" | "pp_comm" => {}
            _ => {
                let allowed = "model_parallel_NPU_group, ep, pp, vpp, ga, all_gpus, checkpoints, \
                               checkpoint_initiates or pp_comm";
                return Err(at(words, word, "the header", format!("`{name}`"), allowed));
            }
        }
    }
    let missing = |field: &str| at(words, first, field, "missing".to_owned(), "in the header");
    Ok(Header {
        layout: Layout {
            gpus: gpus.ok_or_else(|| missing("all_gpus"))?,
            tensor: tensor.ok_or_else(|| missing("model_parallel_NPU_group"))?,
            expert,
            stages,
        },
        checkpoints,
        initiates,
    })
}

/// The twelve columns of a layer.
fn layer(words: &mut Words<'_>) -> Result<Layer, ImportError> {
    let name = words.take("the name of a layer", "a word")?;
    let _dependency: i64 = words.read("the dependency of a layer", "a whole number, such as -1")?;
    let nanos = "a time in whole nanoseconds";
    let mut pass = |ways: &str, plain: Group| -> Result<Pass, ImportError> {
        let compute: u64 = words.read(&format!("the compute time {ways}"), nanos)?;
        let kind = words.take(&format!("the collective {ways}"), COLLECTIVES)?;
        let collective = decode(words, kind, plain)?;
        let bytes: u64 = words.read(&format!("the bytes {ways}"), "a whole number")?;
        Ok(Pass {
            compute: Span::nanos(compute),
            exchange: (collective.filter(|_| bytes > 0)).map(|(collective, group)| Exchange {
                collective,
                group,
                bytes: Bytes::new(bytes),
            }),
        })
    };
    let forward = pass("forward", Group::Tensor)?;
    let inputs = pass("of the gradients of inputs", Group::Tensor)?;
    let weights = pass("of the gradients of weights", Group::Data)?;
    let update: u64 = words.read("the update time", nanos)?;
    Ok(Layer {
        name: name.text.to_owned(),
        line: name.line as u32,
        forward,
        inputs,
        weights,
        update: Span::nanos(update),
        checkpoint: false,
        recomputes: false,
    })
}

const COLLECTIVES: &str = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER or ALLTOALL, \
                           for other groups with _EP or _DP_EP behind it";

/// A collective by its name; without a suffix it is of the group `plain`.
fn decode(
    words: &Words<'_>,
    word: Word<'_>,
    plain: Group,
) -> Result<Option<(Collective, Group)>, ImportError> {
    let (name, group) = if let Some(name) = word.text.strip_suffix("_DP_EP") {
        (name, Group::ExpertData)
    } else if let Some(name) = word.text.strip_suffix("_EP") {
        (name, Group::Expert)
    } else {
        (word.text, plain)
    };
    let collective = match name {
        "NONE" if name == word.text => return Ok(None),
        "ALLREDUCE" => Collective::AllReduce,
        "ALLGATHER" => Collective::AllGather,
        "REDUCESCATTER" => Collective::ReduceScatter,
        "ALLTOALL" => Collective::AllToAll,
        _ => {
            let found = format!("`{}`", word.text);
            return Err(at(words, word, "a collective", found, COLLECTIVES));
        }
    };
    Ok(Some((collective, group)))
}

impl Layout {
    /// How many ranks hold the same part of the model.
    fn replicas(&self) -> u32 {
        self.gpus / (self.tensor * self.stages)
    }

    /// Field, what was found and what is allowed, unless groups divide the ranks.
    fn check(&self) -> Result<(), (&'static str, String, String)> {
        let model = u64::from(self.tensor) * u64::from(self.stages);
        if !u64::from(self.gpus).is_multiple_of(model) {
            let allowed =
                format!("a multiple of {model}, which is model_parallel_NPU_group times pp");
            return Err(("all_gpus", self.gpus.to_string(), allowed));
        }
        let replicas = self.replicas();
        if !replicas.is_multiple_of(self.expert) {
            let allowed = format!("a number that divides the {replicas} replicas");
            return Err(("ep", self.expert.to_string(), allowed));
        }
        Ok(())
    }

    /// All groups of a kind, by rank.
    pub fn groups(&self, group: Group) -> Vec<Vec<u32>> {
        let (replicas, tensor) = (self.replicas(), self.tensor);
        let of_expert = replicas / self.expert;
        // Where a rank is in the group, and which group it is in.
        let key = |rank: u32| -> u32 {
            let (place, replica, stage) = (
                rank % tensor,
                rank / tensor % replicas,
                rank / tensor / replicas,
            );
            match group {
                Group::Tensor => rank / tensor,
                Group::Data => stage * tensor + place,
                Group::Expert => (stage * of_expert + replica / self.expert) * tensor + place,
                Group::ExpertData => (stage * self.expert + replica % self.expert) * tensor + place,
            }
        };
        let size = match group {
            Group::Tensor => tensor,
            Group::Data => replicas,
            Group::Expert => self.expert,
            Group::ExpertData => of_expert,
        };
        let mut groups = vec![Vec::with_capacity(size as usize); (self.gpus / size) as usize];
        for rank in 0..self.gpus {
            groups[key(rank) as usize].push(rank);
        }
        groups
    }
}

impl Workload {
    /// Keeps some layers only: `count` of them, from the layer `first` on.
    ///
    /// # Errors
    /// If there are not so many.
    pub fn keep_layers(&mut self, first: u32, count: Option<u32>) -> Result<(), ImportError> {
        let all = self.layers.len() as u32;
        let count = count.unwrap_or(all.saturating_sub(first));
        if count == 0 || first.checked_add(count).is_none_or(|end| end > all) {
            let found = format!("{all}, of which {count} from layer {first} on are wanted");
            let allowed = format!("of layers that are there: 0 to {}", all.saturating_sub(1));
            return Err(wrong(
                &self.file,
                None,
                "the number of layers",
                found,
                allowed,
            ));
        }
        self.layers.truncate((first + count) as usize);
        self.layers.drain(..first as usize);
        Ok(())
    }

    /// Makes it a workload of fewer ranks: one stage with fewer replicas.
    ///
    /// # Errors
    /// If the groups of the file do not divide so many ranks.
    pub fn fit(&mut self, ranks: u32) -> Result<(), ImportError> {
        if ranks >= self.layout.gpus {
            return Ok(());
        }
        let layout = Layout {
            gpus: ranks,
            stages: 1,
            ..self.layout
        };
        layout.check().map_err(|_| {
            let least = u64::from(layout.tensor) * u64::from(layout.expert);
            let allowed = format!(
                "a multiple of {least}, which is model_parallel_NPU_group times ep, on fewer ranks than the file's"
            );
            wrong(&self.file, Some(1), "all_gpus", format!("to be {ranks}"), allowed)
        })?;
        self.layout = layout;
        Ok(())
    }

    /// Adds all passes.
    pub(super) fn add(
        &self,
        builder: &mut JobBuilder,
        iterations: u32,
        slicing: Slicing,
    ) -> Result<(), ImportError> {
        let count = self.layout.gpus as usize;
        let groups = [Group::Tensor, Group::Data, Group::Expert, Group::ExpertData]
            .map(|group| self.layout.groups(group));
        let mut maker = Maker {
            workload: self,
            groups,
            builder,
            slicing,
        };
        let mut last: Frontier = vec![Vec::new(); count];
        let mut weights: Vec<Frontier> = vec![Vec::new(); self.layers.len()];
        for iteration in 0..iterations {
            maker
                .builder
                .begin_phase(numbered("forward", iteration, iterations), None);
            for (layer, weights) in self.layers.iter().zip(&mut weights) {
                for (last, of_weights) in last.iter_mut().zip(std::mem::take(weights)) {
                    last.extend(of_weights);
                }
                last = maker.compute(layer.forward.compute, &last);
                last = maker.exchange(layer, layer.forward.exchange, &last)?;
            }
            maker
                .builder
                .begin_phase(numbered("backward", iteration, iterations), None);
            for (place, layer) in self.layers.iter().enumerate().rev() {
                if layer.recomputes {
                    for again in self.again(place) {
                        last = maker.compute(again.forward.compute, &last);
                        last = maker.exchange(again, again.forward.exchange, &last)?;
                    }
                }
                last = maker.compute(layer.inputs.compute, &last);
                last = maker.exchange(layer, layer.inputs.exchange, &last)?;
                last = maker.compute(layer.weights.compute, &last);
                if layer.weights.exchange.is_some() {
                    weights[place] = maker.exchange(layer, layer.weights.exchange, &last)?;
                }
            }
        }
        Ok(())
    }

    /// The layers that are computed forward again before the way back of one: from the last checkpoint on.
    fn again(&self, place: usize) -> &[Layer] {
        let checkpoint = (0..=place)
            .rev()
            .find(|place| self.layers[*place].checkpoint);
        checkpoint.map_or(&[], |checkpoint| &self.layers[checkpoint..place])
    }
}

struct Maker<'m> {
    workload: &'m Workload,
    groups: [Vec<Vec<u32>>; 4],
    builder: &'m mut JobBuilder,
    slicing: Slicing,
}

impl Maker<'_> {
    /// Every rank computes.
    fn compute(&mut self, span: Span, after: &Frontier) -> Frontier {
        if span == Span::ZERO {
            return after.clone();
        }
        (0..)
            .zip(after)
            .map(|(rank, after)| vec![self.builder.compute(rank, span, after)])
            .collect()
    }

    /// A collective in every group, and the update after it.
    fn exchange(
        &mut self,
        layer: &Layer,
        exchange: Option<Exchange>,
        after: &Frontier,
    ) -> Result<Frontier, ImportError> {
        let Some(exchange) = exchange else {
            return Ok(after.clone());
        };
        let groups = &self.groups[match exchange.group {
            Group::Tensor => 0,
            Group::Data => 1,
            Group::Expert => 2,
            Group::ExpertData => 3,
        }];
        if groups[0].len() < 2 {
            return Ok(after.clone());
        }
        let mut ends: Frontier = vec![Vec::new(); after.len()];
        for members in groups {
            let before: Frontier = members
                .iter()
                .map(|rank| after[*rank as usize].clone())
                .collect();
            let of_group = collective::usual(
                self.builder,
                exchange.collective,
                members,
                exchange.bytes,
                self.slicing,
                &before,
            )
            .map_err(|found| {
                let field = format!("a collective of layer {}", layer.name);
                let allowed = "a collective of a group";
                wrong(&self.workload.file, Some(layer.line), field, found, allowed)
            })?;
            for (rank, tasks) in members.iter().zip(of_group) {
                ends[*rank as usize] = tasks;
            }
        }
        Ok(self.compute(layer.update, &ends))
    }
}
