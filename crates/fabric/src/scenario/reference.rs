//! The reference of scenario files, in Markdown, from the schema.

use std::fmt::Write;

use serde_json::{Map, Value as Json};

use super::validate::describe;

pub(super) fn markdown(schema: &Json) -> String {
    let mut page = Page {
        root: schema,
        text: String::new(),
        described: Vec::new(),
    };
    page.text.push_str(
        "# Scenario files\n\n<!-- Made from the types of `crates/fabric/src/scenario`; a test compares. -->\n\n",
    );
    page.description(schema);
    page.fields("", schema, "##");
    let ends = page.text.trim_end().len();
    page.text.truncate(ends);
    page.text.push('\n');
    page.text
}

struct Page<'s> {
    root: &'s Json,
    text: String,
    /// Tables that were described already, and where.
    described: Vec<(&'s Json, String)>,
}

impl<'s> Page<'s> {
    /// A table of the fields, then a section for each field that is a table of its own.
    fn fields(&mut self, path: &str, schema: &'s Json, heading: &str) {
        let Some(fields) = schema.get("properties").and_then(Json::as_object) else {
            return;
        };
        let required = schema.get("required").and_then(Json::as_array);
        let is_required = |name: &str| {
            required.is_some_and(|required| required.iter().any(|known| known == name))
        };
        self.text
            .push_str("| field | value | meaning |\n|---|---|---|\n");
        for (name, field) in fields {
            if name == "kind" && field.get("const").is_some() {
                continue;
            }
            let (value, words) = self.value(field);
            let needed = if is_required(name) {
                " **Needed.**"
            } else {
                ""
            };
            let meaning = description(field).or_else(|| description(self.content(field)));
            let meaning = meaning.unwrap_or_default();
            let _ = writeln!(
                self.text,
                "| `{name}` | {value} | {meaning}{needed}{words} |"
            );
        }
        self.text.push('\n');
        self.sections(path, fields, heading);
    }

    fn sections(&mut self, path: &str, fields: &'s Map<String, Json>, heading: &str) {
        for (name, field) in fields {
            let content = self.content(field);
            let below = if path.is_empty() {
                name.clone()
            } else {
                format!("{path}.{name}")
            };
            let is_list = has_items(self.plain(field));
            let of_map = self
                .plain(field)
                .get("additionalProperties")
                .filter(|others| others.is_object());
            let (below, content) = match of_map {
                Some(others) => (format!("{below}.N"), self.content(others)),
                None => (below, content),
            };
            let title = match (is_list, path.is_empty()) {
                (true, true) => format!("`[[{below}]]`"),
                (true, false) => format!("An entry of `{below}`"),
                (false, _) => format!("`[{below}]`"),
            };
            let kinds = self.kinds(content);
            if kinds.is_empty() && content.get("properties").is_none() {
                continue;
            }
            let known = (self.described.iter()).find(|(known, _)| std::ptr::eq(*known, content));
            if let Some((_, place)) = known.cloned() {
                // Below a table that is described elsewhere, so is everything.
                if path.is_empty() {
                    let own = description(field).unwrap_or_default();
                    let _ = writeln!(
                        self.text,
                        "{heading} {title}\n\n{own} The fields are those of {place}.\n"
                    );
                }
                continue;
            }
            self.described.push((content, title.clone()));
            let _ = writeln!(self.text, "{heading} {title}\n");
            self.description(content);
            let deeper = format!("{heading}#");
            if kinds.is_empty() {
                self.fields(&below, content, &deeper);
            }
            for (kind, schema) in kinds {
                let _ = writeln!(self.text, "{deeper} {title} with `kind = \"{kind}\"`\n");
                self.description(schema);
                let own = schema.get("properties").and_then(Json::as_object);
                if own.is_some_and(|own| own.len() > 1) {
                    self.fields(&below, schema, &format!("{deeper}#"));
                }
            }
        }
    }

    /// How a value is written, and what its words mean.
    fn value(&self, field: &'s Json) -> (String, String) {
        let plain = self.plain(field);
        if !self.kinds(plain).is_empty() {
            return ("table".to_owned(), String::new());
        }
        if has_items(plain) {
            let inner = plain.get("items").map(|items| self.value(items));
            return match inner {
                Some((inner, words)) => (format!("list of: {inner}"), words),
                None => ("list of two names".to_owned(), String::new()),
            };
        }
        if let Some(variants) = plain.get("anyOf").and_then(Json::as_array) {
            let inner: Vec<_> = variants.iter().map(|variant| self.value(variant)).collect();
            let values: Vec<_> = inner.iter().map(|(value, _)| value.as_str()).collect();
            let words: String = inner.iter().map(|(_, words)| words.as_str()).collect();
            return (values.join(" or "), words);
        }
        if let Some(variants) = plain.get("oneOf").and_then(Json::as_array) {
            let mut words = String::new();
            let mut names = Vec::new();
            for variant in variants {
                let name = variant.get("const").and_then(Json::as_str).unwrap_or("");
                names.push(format!("`{name}`"));
                let meaning = description(variant).unwrap_or_default();
                let _ = write!(words, "<br>`{name}`: {meaning}");
            }
            return (names.join(", "), words);
        }
        let is_table =
            plain.get("properties").is_some() || plain.get("additionalProperties").is_some();
        if is_table {
            return ("table".to_owned(), String::new());
        }
        (describe(plain), String::new())
    }

    /// The schema without `null`, and with references followed.
    fn plain(&self, schema: &'s Json) -> &'s Json {
        let schema = self.resolve(schema);
        let variants = schema.get("anyOf").and_then(Json::as_array);
        let real: Vec<_> = (variants.into_iter().flatten())
            .filter(|variant| variant.get("type").is_none_or(|of| of != "null"))
            .collect();
        match real[..] {
            [only] => self.resolve(only),
            _ => schema,
        }
    }

    /// The schema of a field's table, or of the entries of its list.
    fn content(&self, field: &'s Json) -> &'s Json {
        let plain = self.plain(field);
        match plain.get("items") {
            Some(items) => self.plain(items),
            None => plain,
        }
    }

    fn kinds(&self, schema: &'s Json) -> Vec<(&'s str, &'s Json)> {
        let variants = schema.get("oneOf").and_then(Json::as_array);
        (variants.into_iter().flatten())
            .filter_map(|variant| {
                let kind = variant.pointer("/properties/kind/const")?.as_str()?;
                Some((kind, variant))
            })
            .collect()
    }

    fn resolve(&self, schema: &'s Json) -> &'s Json {
        let reference = schema.get("$ref").and_then(Json::as_str);
        match reference.and_then(|reference| reference.strip_prefix('#')) {
            Some(pointer) => self.root.pointer(pointer).unwrap_or(schema),
            None => schema,
        }
    }

    fn description(&mut self, schema: &Json) {
        if let Some(text) = description(schema) {
            let _ = writeln!(self.text, "{text}\n");
        }
    }
}

fn has_items(schema: &Json) -> bool {
    schema.get("items").is_some() || schema.get("prefixItems").is_some()
}

fn description(schema: &Json) -> Option<String> {
    let text = schema.get("description")?.as_str()?;
    Some(text.replace('\n', " "))
}
