//! A SONiC switch: the tables of its files, looked up by name, with the place of everything.

use softfabric_fabric::headroom::{CableLength, HeadroomProfile};
use softfabric_fabric::import::Located;
use softfabric_fabric::import::sonic::{numbers_of_ports, object_name};
use softfabric_units::{Bytes, Rate};

use crate::finding::{Finding, Rule};
use crate::rules::headroom::platform_of_path;

/// A switch.
#[derive(Clone, Debug)]
pub struct Switch {
    pub(crate) name: String,
    pub(crate) documents: Vec<Located>,
}

/// An object of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'s> {
    pub(crate) switch: &'s Switch,
    pub(crate) document: &'s Located,
    pub(crate) table: &'s str,
    pub(crate) name: &'s str,
}

impl Switch {
    pub(crate) fn new(name: String) -> Self {
        Self {
            name,
            documents: Vec::new(),
        }
    }

    /// All objects of a table.
    pub(crate) fn table<'s>(&'s self, table: &'s str) -> Vec<Entry<'s>> {
        let documents = self.documents.iter();
        documents
            .flat_map(|document| {
                let names = document.names(&[table]);
                names.into_iter().map(move |name| Entry {
                    switch: self,
                    document,
                    table,
                    name,
                })
            })
            .collect()
    }

    pub(crate) fn has(&self, table: &str) -> bool {
        self.documents
            .iter()
            .any(|document| document.value(&[table]).is_some())
    }

    pub(crate) fn entry<'s>(&'s self, table: &'s str, name: &str) -> Option<Entry<'s>> {
        self.documents.iter().find_map(|document| {
            let names = document.names(&[table]);
            let name = names.into_iter().find(|&known| known == name)?;
            Some(Entry {
                switch: self,
                document,
                table,
                name,
            })
        })
    }

    /// The object that another one names, such as a profile of a group; a name that is not there is a finding.
    pub(crate) fn named<'s>(
        &'s self,
        by: Entry<'_>,
        field: &str,
        table: &'s str,
        findings: &mut Vec<Finding>,
    ) -> Option<Entry<'s>> {
        let name = by.text(field)?;
        let found = self.entry(table, name);
        // Whole tables may be in a file that was not given; `NULL` is what a buffer manager computes.
        if found.is_none() && self.has(table) && name != "NULL" {
            let known: Vec<&str> = self.table(table).iter().map(|entry| entry.name).collect();
            findings.push(
                by.finding(Rule::MissingObject, field)
                    .found(format!("`{name}`, which {table} does not have"))
                    .expected(
                        known.join(", "),
                        "the switch drops a setting whose object is missing",
                    )
                    .advice("correct the name, or add the object"),
            );
        }
        found
    }

    /// Priority groups or queues of ports: port, number, and the object that names the profile.
    pub(crate) fn of_ports<'s>(&'s self, table: &'s str) -> Vec<(&'s str, u8, Entry<'s>)> {
        let mut found = Vec::new();
        for entry in self.table(table) {
            let Some((ports, numbers)) = numbers_of_ports(entry.name) else {
                continue;
            };
            for port in ports.split(',') {
                let numbers = numbers.clone().take_while(|&number| number < 64);
                found.extend(numbers.map(|number| (port, number, entry)));
            }
        }
        found
    }

    /// The platform by whose formula headrooms are computed, if it is known.
    pub(crate) fn platform(&self) -> Option<HeadroomProfile> {
        let metadata = self.entry("DEVICE_METADATA", "localhost")?;
        platform_of_path(metadata.text("platform")?)
    }

    pub(crate) fn speed(&self, port: &str) -> Option<(Rate, Entry<'_>)> {
        let entry = self.entry("PORT", port)?;
        let megabits: u64 = entry.text("speed")?.parse().ok()?;
        Some((Rate::mbps(megabits), entry))
    }

    pub(crate) fn mtu(&self, port: &str) -> Option<(Bytes, Entry<'_>)> {
        let entry = self.entry("PORT", port)?;
        Some((Bytes::new(entry.text("mtu")?.parse().ok()?), entry))
    }

    pub(crate) fn cable(&self, port: &str) -> Option<CableLength> {
        let mut tables = self.table("CABLE_LENGTH").into_iter();
        tables.find_map(|entry| {
            let length: CableLength = entry.text(port)?.parse().ok()?;
            // 0m is SONiC's word for a port that is not in use.
            (length.as_centimetres() > 0).then_some(length)
        })
    }

    /// The QoS settings of a port.
    pub(crate) fn qos(&self, port: &str) -> Option<Entry<'_>> {
        self.entry("PORT_QOS_MAP", port)
    }

    /// The priorities of a list such as `3,4`; `None` where the port does not say.
    pub(crate) fn priorities(
        &self,
        port: &str,
        field: &str,
        findings: &mut Vec<Finding>,
    ) -> Option<Vec<u8>> {
        let entry = self.qos(port)?;
        let text = entry.text(field)?;
        let parts = text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty());
        let numbers: Result<Vec<u8>, _> = parts.map(str::parse).collect();
        match numbers {
            Ok(numbers) if numbers.iter().all(|&number| number < 8) => Some(numbers),
            _ => {
                findings.push(
                    entry
                        .finding(Rule::Syntax, field)
                        .found(format!("`{text}`"))
                        .expected("priorities from 0 to 7, such as 3,4", "802.1Q has eight")
                        .advice("correct the list"),
                );
                None
            }
        }
    }

    /// What a map of the port says of a number; `None` where there is no map, or it does not say.
    pub(crate) fn mapped(&self, port: &str, field: &str, table: &str, number: u8) -> Option<u8> {
        let name = self.qos(port)?.text(field)?;
        self.entry(table, name)?
            .text(&number.to_string())?
            .parse()
            .ok()
    }
}

impl<'s> Entry<'s> {
    /// A field's text; of an object that it names, the name.
    pub(crate) fn text(self, field: &str) -> Option<&'s str> {
        let text = self.document.text(&[self.table, self.name, field])?;
        Some(object_name(text))
    }

    /// A field's number; one that is none is a finding.
    pub(crate) fn number(self, field: &str, findings: &mut Vec<Finding>) -> Option<i64> {
        let text = self.text(field)?;
        match text.parse() {
            Ok(number) => Some(number),
            Err(_) => {
                findings.push(
                    self.finding(Rule::Syntax, field)
                        .found(format!("`{text}`"))
                        .expected("a whole number", "the switch reads nothing else there")
                        .advice("correct the number"),
                );
                None
            }
        }
    }

    pub(crate) fn bytes(self, field: &str, findings: &mut Vec<Finding>) -> Option<Bytes> {
        let number = self.number(field, findings)?;
        u64::try_from(number).ok().map(Bytes::new)
    }

    /// A finding at a field of this object.
    pub(crate) fn finding(self, rule: Rule, field: &str) -> Finding {
        let line = self.document.line(&[self.table, self.name, field]);
        let field = format!("{}|{} {field}", self.table, self.name);
        Finding::new(rule, &self.switch.name, &self.document.file, line, field)
    }
}
