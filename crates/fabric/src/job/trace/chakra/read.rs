//! From the bytes of a file to the nodes of a rank.

use std::path::Path;

use rustc_hash::FxHashMap;
use softfabric_units::{Bytes, Span};

use super::{Action, Group, Message, Node, Rank};
use crate::import::ImportError;
use crate::job::collective::Collective;
use crate::job::trace::wrong;

/// The messages of the schema, as far as they are read (`schema/protobuf/et_def.proto` of mlcommons/chakra).
mod schema {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct GlobalMetadata {
        #[prost(string, tag = "1")]
        pub(super) version: String,
        #[prost(message, repeated, tag = "2")]
        pub(super) attr: Vec<Attribute>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Node {
        #[prost(uint64, tag = "1")]
        pub(super) id: u64,
        #[prost(string, tag = "2")]
        pub(super) name: String,
        #[prost(int32, tag = "3")]
        pub(super) kind: i32,
        #[prost(uint64, repeated, tag = "4")]
        pub(super) ctrl_deps: Vec<u64>,
        #[prost(uint64, repeated, tag = "5")]
        pub(super) data_deps: Vec<u64>,
        #[prost(uint64, tag = "7")]
        pub(super) duration_micros: u64,
        #[prost(message, repeated, tag = "10")]
        pub(super) attr: Vec<Attribute>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Attribute {
        #[prost(string, tag = "1")]
        pub(super) name: String,
        #[prost(
            oneof = "Value",
            tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29"
        )]
        pub(super) value: Option<Value>,
    }

    #[derive(Clone, PartialEq, prost::Oneof)]
    pub(super) enum Value {
        #[prost(int32, tag = "7")]
        Int32(i32),
        #[prost(int64, tag = "9")]
        Int64(i64),
        #[prost(uint32, tag = "11")]
        Uint32(u32),
        #[prost(uint64, tag = "13")]
        Uint64(u64),
        #[prost(sint32, tag = "15")]
        Sint32(i32),
        #[prost(sint64, tag = "17")]
        Sint64(i64),
        #[prost(fixed32, tag = "19")]
        Fixed32(u32),
        #[prost(fixed64, tag = "21")]
        Fixed64(u64),
        #[prost(sfixed32, tag = "23")]
        Sfixed32(i32),
        #[prost(sfixed64, tag = "25")]
        Sfixed64(i64),
        #[prost(bool, tag = "27")]
        Bool(bool),
        #[prost(message, tag = "28")]
        BoolList(BoolList),
        #[prost(string, tag = "29")]
        String(String),
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct BoolList {
        #[prost(bool, repeated, tag = "1")]
        pub(super) values: Vec<bool>,
    }
}

/// Reads the trace of a rank, one of `count`.
///
/// # Errors
/// If it ends in the middle, is of another version, or a node is none that can be followed.
pub fn read(file: &Path, bytes: &[u8], count: u32) -> Result<Rank, ImportError> {
    let mut stream = Stream {
        file,
        bytes,
        at: 0,
        messages: 0,
    };
    let metadata: schema::GlobalMetadata = stream.next("GlobalMetadata")?.ok_or_else(|| {
        wrong(
            file,
            None,
            "the file",
            "empty",
            "a Chakra execution trace, GlobalMetadata first",
        )
    })?;
    check_version(file, &metadata)?;
    let mut nodes = Vec::new();
    while let Some(node) = stream.next::<schema::Node>("Node")? {
        nodes.push(node);
    }
    let mut places = FxHashMap::default();
    for (place, node) in (0u32..).zip(&nodes) {
        if places.insert(node.id, place).is_some() {
            return Err(wrong(
                file,
                None,
                name_of(node),
                "there twice",
                "there once",
            ));
        }
    }
    let nodes = (nodes.iter())
        .map(|node| {
            let mut after = Vec::new();
            for id in node.ctrl_deps.iter().chain(&node.data_deps) {
                let place = places.get(id).ok_or_else(|| {
                    let field = format!("a dependency of {}", name_of(node));
                    wrong(
                        file,
                        None,
                        field,
                        format!("node {id}"),
                        "a node that is in the file",
                    )
                })?;
                after.push(*place);
            }
            after.sort_unstable();
            after.dedup();
            Ok(Node {
                id: node.id,
                name: node.name.clone(),
                action: Reading { file, node, count }.action()?,
                after,
            })
        })
        .collect::<Result<_, ImportError>>()?;
    Ok(Rank {
        file: file.to_owned(),
        nodes,
    })
}

/// Versions 0.0.4 and 1 are alike in what is read here. Converters of the first releases say the version as an attribute.
fn check_version(file: &Path, metadata: &schema::GlobalMetadata) -> Result<(), ImportError> {
    let schema = metadata
        .attr
        .iter()
        .find(|attribute| attribute.name == "schema");
    let version = match schema.and_then(|attribute| attribute.value.as_ref()) {
        Some(schema::Value::String(version)) if metadata.version.is_empty() => version,
        _ => &metadata.version,
    };
    match version.split('.').next() {
        _ if version.is_empty() || version == "0.0.4" => Ok(()),
        Some("1") => Ok(()),
        _ => {
            let found = format!("`{version}`");
            Err(wrong(
                file,
                None,
                "the version of the schema",
                found,
                "0.0.4 or 1.x",
            ))
        }
    }
}

fn name_of(node: &schema::Node) -> String {
    format!("node {} `{}`", node.id, node.name)
}

/// Messages, each with its length before it.
struct Stream<'a> {
    file: &'a Path,
    bytes: &'a [u8],
    at: usize,
    messages: u64,
}

impl Stream<'_> {
    fn next<M: prost::Message + Default>(&mut self, kind: &str) -> Result<Option<M>, ImportError> {
        let mut rest = &self.bytes[self.at..];
        if rest.is_empty() {
            return Ok(None);
        }
        let field = format!("message {}, at byte {},", self.messages, self.at);
        let length = prost::encoding::decode_varint(&mut rest).map_err(|_| {
            let allowed = "preceded by its length as a varint";
            wrong(self.file, None, field.clone(), "without a length", allowed)
        })?;
        let start = self.bytes.len() - rest.len();
        let Some(content) = usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length))
        else {
            let found = format!("{length} bytes long, of which {} are there", rest.len());
            let error = wrong(self.file, None, field, found, "whole");
            return Err(error.advise("the file is cut off, compressed, or none of Chakra's"));
        };
        let message = M::decode(content).map_err(|error| {
            let found = format!("no {kind}: {error}");
            let allowed = format!("a {kind} of the schema et_def.proto");
            wrong(self.file, None, field, found, allowed)
        })?;
        self.at = start + content.len();
        self.messages += 1;
        Ok(Some(message))
    }
}

/// A node on its way from the schema's form.
struct Reading<'a> {
    file: &'a Path,
    node: &'a schema::Node,
    /// How many ranks there are.
    count: u32,
}

impl Reading<'_> {
    fn action(&self) -> Result<Action, ImportError> {
        match self.node.kind {
            1 => Ok(Action::Nothing),
            4 => {
                let micros = self.node.duration_micros;
                if micros == 0 && self.integer("num_ops")?.is_some_and(|count| count > 0) {
                    let found = "0, with a number of operations instead";
                    let error = self.wrong("duration_micros", found, "how long it computes");
                    return Err(error.advise("give each computation its duration"));
                }
                if micros > LONGEST {
                    return Err(self.wrong("duration_micros", micros.to_string(), "at most 10¹²"));
                }
                let on_cpu = self.flag("is_cpu_op")?;
                Ok(Action::Compute {
                    span: Span::micros(micros),
                    on_cpu,
                })
            }
            5 => Ok(Action::Send(self.message("comm_dst")?)),
            6 => Ok(Action::Receive(self.message("comm_src")?)),
            7 => self.collective(),
            kind => {
                let names = [
                    "INVALID_NODE",
                    "METADATA_NODE",
                    "MEM_LOAD_NODE",
                    "MEM_STORE_NODE",
                ];
                let name = usize::try_from(kind).ok().and_then(|kind| names.get(kind));
                let found = name.map_or_else(|| format!("{kind}"), |name| (*name).to_owned());
                let allowed =
                    "COMP_NODE, COMM_SEND_NODE, COMM_RECV_NODE, COMM_COLL_NODE or METADATA_NODE";
                Err(self.wrong("type", found, allowed))
            }
        }
    }

    fn message(&self, peer: &str) -> Result<Message, ImportError> {
        let found = self.needed(peer)?;
        let rank = u32::try_from(found).ok().filter(|rank| *rank < self.count);
        let most = self.count - 1;
        Ok(Message {
            peer: rank.ok_or_else(|| {
                self.wrong(peer, found.to_string(), format!("a rank from 0 to {most}"))
            })?,
            bytes: self.bytes()?,
            tag: match self.integer("comm_tag")? {
                None => 0,
                Some(tag) => u32::try_from(tag).map_err(|_| {
                    self.wrong("comm_tag", tag.to_string(), "a whole number from 0 on")
                })?,
            },
        })
    }

    fn collective(&self) -> Result<Action, ImportError> {
        let kind = self.needed("comm_type")?;
        let mut bytes = None;
        let collective = match kind {
            0 => Collective::AllReduce,
            2 => Collective::AllGather,
            5 => Collective::Broadcast,
            6 => Collective::AllToAll,
            7 | 8 => Collective::ReduceScatter,
            // A barrier is an all-reduce of next to nothing.
            9 => {
                bytes = Some(Bytes::new(1));
                Collective::AllReduce
            }
            _ => {
                let names = [(1, "REDUCE"), (3, "GATHER"), (4, "SCATTER")];
                let name = names.iter().find(|(number, _)| *number == kind);
                let found = name.map_or_else(|| kind.to_string(), |(_, name)| (*name).to_owned());
                let allowed =
                    "ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, REDUCE_SCATTER or BARRIER";
                return Err(self.wrong("comm_type", found, allowed));
            }
        };
        let bytes = bytes.map_or_else(|| self.bytes(), Ok)?;
        Ok(Action::Collective {
            collective,
            bytes,
            group: self.group()?,
        })
    }

    fn group(&self) -> Result<Group, ImportError> {
        match self.value("pg_name") {
            Some(schema::Value::String(name)) if !name.is_empty() => {
                return Ok(Group::Named(name.clone()));
            }
            Some(schema::Value::String(_)) | None => {}
            Some(other) => return Err(self.wrong("pg_name", format!("{other:?}"), "a text")),
        }
        match self.value("involved_dim") {
            None => Ok(Group::All),
            Some(schema::Value::BoolList(list)) => match list.values[..] {
                [true, false] => Ok(Group::Server),
                [false, true] => Ok(Group::Rail),
                _ if list.values.iter().all(|involved| *involved) => Ok(Group::All),
                _ => {
                    let found = format!("{:?}", list.values);
                    let allowed = "all true, or of two dimensions one";
                    let error = self.wrong("involved_dim", found, allowed);
                    Err(error.advise("name process groups instead: pg_name"))
                }
            },
            Some(other) => Err(self.wrong(
                "involved_dim",
                format!("{other:?}"),
                "a list of true and false",
            )),
        }
    }

    fn bytes(&self) -> Result<Bytes, ImportError> {
        let bytes = self.needed("comm_size")?;
        match bytes {
            0..=LARGEST => Ok(Bytes::new(bytes as u64)),
            _ => Err(self.wrong("comm_size", bytes.to_string(), "0 to 2⁴⁰ bytes")),
        }
    }

    fn needed(&self, name: &str) -> Result<i128, ImportError> {
        self.integer(name)?
            .ok_or_else(|| self.wrong(name, "missing", "an attribute of the node"))
    }

    fn value(&self, name: &str) -> Option<&schema::Value> {
        let attribute = self
            .node
            .attr
            .iter()
            .find(|attribute| attribute.name == name);
        attribute.and_then(|attribute| attribute.value.as_ref())
    }

    /// An attribute as a whole number, of whatever width it is written.
    fn integer(&self, name: &str) -> Result<Option<i128>, ImportError> {
        use schema::Value;
        Ok(Some(match self.value(name) {
            None => return Ok(None),
            Some(Value::Int32(value) | Value::Sint32(value) | Value::Sfixed32(value)) => {
                i128::from(*value)
            }
            Some(Value::Int64(value) | Value::Sint64(value) | Value::Sfixed64(value)) => {
                i128::from(*value)
            }
            Some(Value::Uint32(value) | Value::Fixed32(value)) => i128::from(*value),
            Some(Value::Uint64(value) | Value::Fixed64(value)) => i128::from(*value),
            Some(other) => {
                return Err(self.wrong(name, format!("{other:?}"), "a whole number"));
            }
        }))
    }

    fn flag(&self, name: &str) -> Result<bool, ImportError> {
        match self.value(name) {
            None => Ok(false),
            Some(schema::Value::Bool(value)) => Ok(*value),
            Some(other) => Err(self.wrong(name, format!("{other:?}"), "true or false")),
        }
    }

    fn wrong(
        &self,
        field: &str,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ImportError {
        let field = format!("{field} of {}", name_of(self.node));
        wrong(self.file, None, field, found, allowed)
    }
}

/// The longest computation, in microseconds: about 11 days.
const LONGEST: u64 = 1_000_000_000_000;

/// The largest message or collective.
const LARGEST: i128 = 1 << 40;
