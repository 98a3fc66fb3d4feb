//! Pipeline parallelism: micro-batches go through stages forward and back.

use softfabric_units::{Bytes, Span};

use super::{Frontier, JobBuilder, Slicing};

/// A pipeline with the schedule "one forward, one back" (D. Narayanan et al.: "Efficient large-scale language model training
/// on GPU clusters using Megatron-LM", SC 2021, section 2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pipeline {
    /// How many stages; each has as many ranks as the others, and rank i of a stage hands on to rank i of the next.
    pub stages: u32,
    /// How many micro-batches.
    pub micro_batches: u32,
    /// What a rank hands on for each.
    pub bytes: Bytes,
    /// How long a rank computes forward.
    pub forward: Span,
    /// How long it computes back.
    pub backward: Span,
}

impl Pipeline {
    /// Adds it for all ranks of a job, whose number the stages divide.
    pub fn add(&self, builder: &mut JobBuilder, slicing: Slicing, after: &Frontier) -> Frontier {
        let width = builder.ranks() / self.stages;
        let (messages, slice) = slicing.cut(self.bytes);
        let mut ends: Frontier = after.clone();
        for lane in 0..width {
            for stage in 0..self.stages {
                let rank = stage * width + lane;
                let before = stage.checked_sub(1).map(|stage| stage * width + lane);
                let next = (stage + 1 < self.stages).then(|| (stage + 1) * width + lane);
                // What comes for each micro-batch, forward and back.
                let take = |from: Option<u32>, builder: &mut JobBuilder| -> Vec<Option<u32>> {
                    (0..self.micro_batches)
                        .map(|_| {
                            let pair = (from?, rank);
                            let begin = &after[rank as usize];
                            Some(builder.receive(pair, messages, slicing.handling, begin))
                        })
                        .collect()
                };
                let inputs = take(before, builder);
                let gradients = take(next, builder);
                let mut last: Option<u32> = None;
                let mut tasks = Vec::new();
                for (back, micro_batch) in self.order(stage) {
                    let (needed, span, to) = if back {
                        (gradients[micro_batch], self.backward, before)
                    } else {
                        (inputs[micro_batch], self.forward, next)
                    };
                    let mut waits: Vec<u32> = needed.into_iter().chain(last).collect();
                    if last.is_none() {
                        waits.extend(&after[rank as usize]);
                    }
                    let computed = builder.compute(rank, span, &waits);
                    last = Some(computed);
                    if let Some(to) = to {
                        let pair = (rank, to);
                        tasks.push(builder.send(pair, (messages, slice), Vec::new(), &[computed]));
                    }
                }
                tasks.extend(last);
                ends[rank as usize] = tasks;
            }
        }
        ends
    }

    /// What a stage computes, in order: forward or back, and which micro-batch.
    fn order(&self, stage: u32) -> Vec<(bool, usize)> {
        let all = self.micro_batches as usize;
        let ahead = ((self.stages - 1 - stage) as usize).min(all);
        let mut order: Vec<(bool, usize)> = (0..ahead).map(|batch| (false, batch)).collect();
        for batch in 0..all {
            if ahead + batch < all {
                order.push((false, ahead + batch));
            }
            order.push((true, batch));
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_micro_batch_goes_forward_before_it_comes_back() {
        for stages in 2..6 {
            for micro_batches in 1..9 {
                let pipeline = Pipeline {
                    stages,
                    micro_batches,
                    bytes: Bytes::ZERO,
                    forward: Span::ZERO,
                    backward: Span::ZERO,
                };
                for stage in 0..stages {
                    let order = pipeline.order(stage);
                    assert_eq!(order.len(), 2 * micro_batches as usize);
                    let place = |wanted| order.iter().position(|step| *step == wanted).unwrap();
                    for batch in 0..micro_batches as usize {
                        assert!(place((false, batch)) < place((true, batch)));
                    }
                    // Never more are under way than stages are left.
                    let mut open = 0;
                    for (back, _) in &order {
                        open = if *back { open - 1 } else { open + 1 };
                        assert!(open <= (stages - stage) as i32);
                    }
                }
            }
        }
    }
}
