//! A JSON file of SONiC: tables of named objects whose values are texts.

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::{Map, Value};
use softfabric_units::{Bytes, Class};

use crate::import::{ImportError, Located};
use crate::plan::Alpha;

/// A file, and where its names stand.
pub(super) struct Document<'d> {
    pub(super) file: &'d Path,
    content: Located,
}

/// An object of a table: `BUFFER_PROFILE`, `egress_lossy_profile`.
#[derive(Clone, Copy)]
pub(super) struct Entry<'e> {
    document: &'e Document<'e>,
    table: &'e str,
    name: &'e str,
    fields: &'e Map<String, Value>,
}

impl<'d> Document<'d> {
    pub(super) fn read(file: &'d Path, text: &str) -> Result<Self, ImportError> {
        let content =
            Located::read(&file.display().to_string(), text).map_err(|(line, problem)| {
                ImportError::new(
                    file,
                    Some(line),
                    "the file",
                    problem,
                    "JSON with tables by name",
                )
            })?;
        Ok(Self { file, content })
    }

    /// The objects of a table, in the order of the file; none if there is no such table.
    pub(super) fn table<'e>(&'e self, table: &'e str) -> impl Iterator<Item = Entry<'e>> + 'e {
        let found = self.content.value(&[table]).and_then(Value::as_object);
        (found.into_iter().flatten()).filter_map(move |(name, fields)| {
            Some(Entry {
                document: self,
                table,
                name,
                fields: fields.as_object()?,
            })
        })
    }

    pub(super) fn has(&self, table: &str) -> bool {
        self.content.value(&[table]).is_some()
    }

    /// An object of a table, which has to be there.
    pub(super) fn entry<'e>(
        &'e self,
        table: &'e str,
        name: &str,
        named_by: Option<Entry<'_>>,
    ) -> Result<Entry<'e>, ImportError> {
        self.table(table)
            .find(|entry| entry.name == name)
            .ok_or_else(|| {
                let known: Vec<_> = self.table(table).map(|entry| entry.name).collect();
                let line = named_by.and_then(|entry| entry.line());
                let found = format!("`{name}`, which is not there");
                ImportError::new(
                    self.file,
                    line,
                    format!("a name in {table}"),
                    found,
                    known.join(", "),
                )
            })
    }
}

impl<'e> Entry<'e> {
    pub(super) const fn name(self) -> &'e str {
        self.name
    }

    /// Port and number range of a name `Ethernet0|3-4`.
    pub(super) fn port_and_classes(self) -> Result<(&'e str, RangeInclusive<u8>), ImportError> {
        numbers_of_ports(self.name).ok_or_else(|| {
            let found = format!("`{}`", self.name);
            let field = format!("a name in {}", self.table);
            let allowed = "a port and numbers, such as Ethernet0|3-4";
            ImportError::new(self.document.file, self.line(), field, found, allowed)
        })
    }

    pub(super) fn text(self, field: &str) -> Option<&'e str> {
        Some(object_name(self.fields.get(field)?.as_str()?))
    }

    pub(super) fn needed(self, field: &str) -> Result<&'e str, ImportError> {
        self.text(field)
            .ok_or_else(|| self.wrong(field, "missing", "a text"))
    }

    pub(super) fn number(self, field: &str) -> Result<Option<i64>, ImportError> {
        let Some(text) = self.text(field) else {
            return Ok(None);
        };
        let number = text
            .parse()
            .map_err(|_| self.wrong(field, text, "a whole number"))?;
        Ok(Some(number))
    }

    pub(super) fn bytes(self, field: &str) -> Result<Option<Bytes>, ImportError> {
        let number = self.number(field)?;
        number
            .map(|number| {
                u64::try_from(number)
                    .map(Bytes::new)
                    .map_err(|_| self.wrong(field, number.to_string(), "bytes"))
            })
            .transpose()
    }

    /// `dynamic_th` or `static_th`.
    pub(super) fn threshold(self) -> Result<Option<Alpha>, ImportError> {
        if let Some(exponent) = self.number("dynamic_th")? {
            if !(-8..=7).contains(&exponent) {
                let found = exponent.to_string();
                return Err(self.wrong("dynamic_th", found, "an exponent from -8 to 7"));
            }
            return Ok(Some(threshold(exponent)));
        }
        Ok(self.bytes("static_th")?.map(Alpha::Static))
    }

    /// A class number in a map.
    pub(super) fn class(self, field: &str) -> Result<Option<Class>, ImportError> {
        let Some(number) = self.number(field)? else {
            return Ok(None);
        };
        let class = u8::try_from(number).ok().and_then(Class::checked);
        class
            .map(Some)
            .ok_or_else(|| self.wrong(field, number.to_string(), "a class from 0 to 7"))
    }

    pub(super) fn line(self) -> Option<usize> {
        self.document.content.line(&[self.table, self.name])
    }

    pub(super) fn wrong(
        self,
        field: &str,
        found: impl Into<String>,
        allowed: impl Into<String>,
    ) -> ImportError {
        let field = format!("{} of {} {}", field, self.table, self.name);
        ImportError::new(self.document.file, self.line(), field, found, allowed)
    }
}

/// The name of an object that a field names. Older files write `[BUFFER_PROFILE|name]`.
pub fn object_name(text: &str) -> &str {
    let inner = text
        .strip_prefix('[')
        .and_then(|text| text.strip_suffix(']'));
    let name = inner.and_then(|inner| inner.split_once('|'));
    name.map_or(text, |(_, name)| name)
}

/// The ports and the numbers of groups or queues in a name such as `Ethernet0,Ethernet4|3-4`.
pub fn numbers_of_ports(name: &str) -> Option<(&str, RangeInclusive<u8>)> {
    let (ports, range) = name.rsplit_once('|')?;
    let (from, to) = range.split_once('-').unwrap_or((range, range));
    Some((ports, from.parse().ok()?..=to.parse().ok()?))
}

/// 2ᵏ of what is free; SONiC writes 7 for no limit, and -8 on ports that are not in use.
pub(super) fn threshold(exponent: i64) -> Alpha {
    match exponent {
        -7..=6 => Alpha::Dynamic(exponent as i8),
        7.. => Alpha::Unlimited,
        _ => Alpha::Static(Bytes::ZERO),
    }
}
