//! Checks a text against the schema, and says of everything that is wrong where it stands.
//!
//! Why not leave it to serde: serde stops at the first error, loses the place inside of tagged tables, and does not
//! know which name is nearest.

use serde_json::{Map, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Problems, ScenarioError, did_you_mean};
use super::quantity;
use super::source::Source;

pub(super) fn validate(source: &Source) -> Result<(), ScenarioError> {
    let mut problems = Problems::new(source);
    let (document, errors) = DeTable::parse_recoverable(&source.text);
    for error in errors {
        let found = error.message().to_owned();
        problems.add_at(error.span(), "", found, "TOML", None);
    }
    if problems.len() == 0 {
        let schema = super::schema();
        let mut walk = Walk {
            root: &schema,
            problems: &mut problems,
        };
        walk.table("", document.get_ref(), document.span(), &schema, &[]);
    }
    problems.finish()
}

struct Walk<'w, 's> {
    root: &'w Json,
    problems: &'w mut Problems<'s>,
}

impl<'w> Walk<'w, '_> {
    fn value(&mut self, path: &str, value: &Spanned<DeValue<'_>>, schema: &'w Json) {
        let schema = self.resolve(schema);
        if let Some(variants) = schema.get("oneOf").and_then(Json::as_array) {
            return self.one_of(path, value, variants);
        }
        if let Some(variants) = schema.get("anyOf").and_then(Json::as_array) {
            return self.any_of(path, value, variants);
        }
        if let Some(words) = schema.get("enum").and_then(Json::as_array) {
            let words: Vec<_> = words.iter().filter_map(Json::as_str).collect();
            return self.word(path, value, &words);
        }
        match value.get_ref() {
            DeValue::Table(table) if has_type(schema, "object") => {
                self.table(path, table, value.span(), schema, &[]);
            }
            DeValue::Array(array) if has_type(schema, "array") => {
                self.array(path, array.iter(), value, schema);
            }
            DeValue::String(text) if has_type(schema, "string") => {
                let format = schema.get("format").and_then(Json::as_str).unwrap_or("");
                if let Some(wrong) = quantity::check(format, text) {
                    let found = format!("`{text}`");
                    self.add(path, value, found, describe(schema), Some(wrong));
                }
            }
            DeValue::Integer(number) if is_number(schema) => {
                match i128::from_str_radix(number.as_str(), number.radix()) {
                    Ok(number) => self.range(path, value, number as f64, schema),
                    Err(_) => self.wrong_type(path, value, schema),
                }
            }
            DeValue::Float(number) if has_type(schema, "number") => match number.as_str().parse() {
                Ok(number) => self.range(path, value, number, schema),
                Err(_) => self.wrong_type(path, value, schema),
            },
            DeValue::Boolean(_) if has_type(schema, "boolean") => {}
            _ => self.wrong_type(path, value, schema),
        }
    }

    /// Checks the keys of a table; `given` are keys that are checked already.
    fn table(
        &mut self,
        path: &str,
        table: &DeTable<'_>,
        span: std::ops::Range<usize>,
        schema: &'w Json,
        given: &[&str],
    ) {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Json::as_object);
        let others = schema
            .get("additionalProperties")
            .filter(|others| others.is_object());
        for (key, value) in table {
            let name: &str = key.get_ref();
            let below = join(path, name);
            if given.contains(&name) {
                continue;
            }
            if let Some(schema) = properties.and_then(|known| known.get(name)).or(others) {
                self.value(&below, value, schema);
                continue;
            }
            let known = properties.unwrap_or(&empty).keys().map(String::as_str);
            let known: Vec<_> = known.collect();
            let advice = did_you_mean(name, known.iter().copied());
            let found = format!("`{name}`, which is not a field");
            self.problems
                .add_at(Some(key.span()), below, found, known.join(", "), advice);
        }
        let required = schema.get("required").and_then(Json::as_array);
        for name in required.into_iter().flatten().filter_map(Json::as_str) {
            if table.keys().any(|key| key.get_ref() == name) {
                continue;
            }
            let field = properties.and_then(|known| known.get(name));
            let allowed = field.map_or_else(String::new, |field| describe(self.resolve(field)));
            let is_table = matches!(allowed.as_str(), "a table" | "a table with `kind`");
            let advice = match path.is_empty() && is_table {
                true => format!("add `[{name}]` and its fields"),
                false => format!("add `{name} = …`"),
            };
            let below = join(path, name);
            let span = Some(span.clone()).filter(|span| !path.is_empty() && !span.is_empty());
            self.problems
                .add_at(span, below, "nothing", allowed, Some(advice));
        }
    }

    fn array<'v, 'i: 'v>(
        &mut self,
        path: &str,
        items: impl ExactSizeIterator<Item = &'v Spanned<DeValue<'i>>>,
        value: &Spanned<DeValue<'_>>,
        schema: &'w Json,
    ) {
        let least = schema.get("minItems").and_then(Json::as_u64).unwrap_or(0);
        let most = schema.get("maxItems").and_then(Json::as_u64);
        let count = items.len() as u64;
        if count < least || most.is_some_and(|most| count > most) {
            let found = format!("{count} values");
            let allowed = match most {
                Some(most) if most == least => format!("{least} values"),
                _ => format!("at least {least} values"),
            };
            return self.add(path, value, found, allowed, None);
        }
        let each = schema.get("prefixItems").and_then(Json::as_array);
        for (place, item) in items.enumerate() {
            let schema = each
                .and_then(|each| each.get(place))
                .or_else(|| schema.get("items"));
            if let Some(schema) = schema {
                self.value(&format!("{path}[{place}]"), item, schema);
            }
        }
    }

    /// One of several words, or one of several tables told apart by `kind`.
    fn one_of(&mut self, path: &str, value: &Spanned<DeValue<'_>>, variants: &'w [Json]) {
        let words: Vec<_> = variants.iter().filter_map(word_of).collect();
        if words.len() == variants.len() {
            return self.word(path, value, &words);
        }
        let kinds: Vec<_> = (variants.iter())
            .filter_map(|variant| Some((word_of(variant.pointer("/properties/kind")?)?, variant)))
            .collect();
        let names: Vec<_> = kinds.iter().map(|(kind, _)| *kind).collect();
        let DeValue::Table(table) = value.get_ref() else {
            let found = shown(value.get_ref());
            let allowed = format!("a table with `kind`: {}", names.join(", "));
            return self.add(path, value, found, allowed, None);
        };
        let below = join(path, "kind");
        let Some((_, kind)) = table.iter().find(|(key, _)| key.get_ref() == "kind") else {
            let advice = Some("add `kind = …`".to_owned());
            return self.problems.add_at(
                Some(value.span()),
                below,
                "nothing",
                names.join(", "),
                advice,
            );
        };
        let chosen = kind.get_ref().as_str();
        match kinds.iter().find(|(name, _)| Some(*name) == chosen) {
            Some((_, schema)) => self.table(path, table, value.span(), schema, &["kind"]),
            None => self.word(&below, kind, &names),
        }
    }

    /// A value that may be of several types: fine if it is one of them.
    fn any_of(&mut self, path: &str, value: &Spanned<DeValue<'_>>, variants: &'w [Json]) {
        let real: Vec<_> = (variants.iter())
            .filter(|variant| !has_type(variant, "null"))
            .collect();
        if let [only] = real[..] {
            return self.value(path, value, only);
        }
        let before = self.problems.len();
        for variant in &real {
            self.value(path, value, variant);
            let found = self.problems.split_off(before);
            if found.is_empty() {
                return;
            }
        }
        let allowed: Vec<_> = (real.iter())
            .map(|variant| describe(self.resolve(variant)))
            .collect();
        let found = shown(value.get_ref());
        self.add(path, value, found, allowed.join(", or "), None);
    }

    fn word(&mut self, path: &str, value: &Spanned<DeValue<'_>>, words: &[&str]) {
        let advice = match value.get_ref().as_str() {
            Some(text) if words.contains(&text) => return,
            Some(text) => did_you_mean(text, words.iter().copied()),
            None => None,
        };
        let found = shown(value.get_ref());
        self.add(path, value, found, words.join(", "), advice);
    }

    fn range(&mut self, path: &str, value: &Spanned<DeValue<'_>>, number: f64, schema: &Json) {
        let (least, most) = limits(schema);
        let most = most.or(match schema.get("format").and_then(Json::as_str) {
            Some("uint8") => Some(f64::from(u8::MAX)),
            Some("uint16") => Some(f64::from(u16::MAX)),
            Some("uint32") => Some(f64::from(u32::MAX)),
            _ => None,
        });
        if least.is_some_and(|least| number < least) || most.is_some_and(|most| number > most) {
            let found = shown(value.get_ref());
            self.add(path, value, found, describe(schema), None);
        }
    }

    fn wrong_type(&mut self, path: &str, value: &Spanned<DeValue<'_>>, schema: &Json) {
        let is_bare_number = matches!(value.get_ref(), DeValue::Integer(_) | DeValue::Float(_));
        let advice = match example(schema) {
            Some(example) if is_bare_number && schema.get("format").is_some() => {
                Some(format!("the unit is missing: write it as {example}"))
            }
            _ => None,
        };
        let found = shown(value.get_ref());
        self.add(path, value, found, describe(schema), advice);
    }

    fn add(
        &mut self,
        path: &str,
        value: &Spanned<DeValue<'_>>,
        found: String,
        allowed: String,
        advice: Option<String>,
    ) {
        self.problems
            .add_at(Some(value.span()), path, found, allowed, advice);
    }

    fn resolve(&self, schema: &'w Json) -> &'w Json {
        let reference = schema.get("$ref").and_then(Json::as_str);
        match reference.and_then(|reference| reference.strip_prefix('#')) {
            Some(pointer) => self.root.pointer(pointer).unwrap_or(schema),
            None => schema,
        }
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

fn word_of(schema: &Json) -> Option<&str> {
    schema.get("const").and_then(Json::as_str)
}

fn has_type(schema: &Json, wanted: &str) -> bool {
    match schema.get("type") {
        Some(Json::String(found)) => found == wanted,
        Some(Json::Array(found)) => found.iter().any(|found| found == wanted),
        _ => false,
    }
}

fn is_number(schema: &Json) -> bool {
    has_type(schema, "integer") || has_type(schema, "number")
}

fn limits(schema: &Json) -> (Option<f64>, Option<f64>) {
    let limit = |key| schema.get(key).and_then(Json::as_f64);
    (limit("minimum"), limit("maximum"))
}

fn example(schema: &Json) -> Option<String> {
    let examples = schema.get("examples")?.as_array()?;
    Some(examples.first()?.to_string())
}

/// What a schema allows, in words.
pub(super) fn describe(schema: &Json) -> String {
    let words = |key: &str| -> Option<Vec<&str>> {
        let words = schema.get(key)?.as_array()?;
        words
            .iter()
            .map(|word| word.as_str().or_else(|| word_of(word)))
            .collect()
    };
    if let Some(words) = words("enum").or_else(|| words("oneOf")) {
        return words.join(", ");
    }
    if let (Some(title), Some(Json::Array(examples))) = (
        schema.get("title").and_then(Json::as_str),
        schema.get("examples"),
    ) {
        let examples: Vec<_> = examples.iter().map(Json::to_string).collect();
        return format!("{title}, such as {}", examples.join(" or "));
    }
    if is_number(schema) {
        let what = if has_type(schema, "integer") {
            "a whole number"
        } else {
            "a number"
        };
        return match limits(schema) {
            (Some(least), Some(most)) => format!("{what} from {least} to {most}"),
            (Some(least), None) => format!("{what}, {least} or more"),
            _ => what.to_owned(),
        };
    }
    for (name, what) in [
        ("boolean", "true or false"),
        ("array", "a list"),
        ("object", "a table"),
        ("string", "a text"),
    ] {
        if has_type(schema, name) {
            return what.to_owned();
        }
    }
    "a table with `kind`".to_owned()
}

fn shown(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) => format!("`{text}`"),
        DeValue::Integer(number) => format!("the number {}", number.as_str()),
        DeValue::Float(number) => format!("the number {}", number.as_str()),
        DeValue::Boolean(value) => format!("{value}"),
        DeValue::Datetime(value) => format!("the date {value}"),
        DeValue::Array(_) => "a list".to_owned(),
        DeValue::Table(_) => "a table".to_owned(),
    }
}
