//! JSON that knows on which line each of its names stands.

use std::collections::BTreeMap;

use serde_json::Value;

/// A document, and where its names are.
#[derive(Clone, Debug)]
pub struct Located {
    /// The name that it was given.
    pub file: String,
    value: Value,
    /// Line by path.
    lines: BTreeMap<Vec<String>, usize>,
}

impl Located {
    /// Reads a text.
    ///
    /// # Errors
    /// The line and what is wrong there.
    pub fn read(file: &str, text: &str) -> Result<Self, (usize, String)> {
        let value: Value =
            serde_json::from_str(text).map_err(|error| (error.line(), error.to_string()))?;
        if !value.is_object() {
            return Err((1, "no object: tables by name are needed".to_owned()));
        }
        Ok(Self {
            file: file.to_owned(),
            value,
            lines: lines(text),
        })
    }

    /// The value at a path of names.
    pub fn value(&self, path: &[&str]) -> Option<&Value> {
        path.iter()
            .try_fold(&self.value, |value, name| value.get(name))
    }

    /// The text at a path of names; `None` also where it is no text.
    pub fn text(&self, path: &[&str]) -> Option<&str> {
        self.value(path)?.as_str()
    }

    /// The names of an object, in the order of their text.
    pub fn names(&self, path: &[&str]) -> Vec<&str> {
        let object = self.value(path).and_then(Value::as_object);
        object.map_or_else(Vec::new, |object| {
            object.keys().map(String::as_str).collect()
        })
    }

    /// The line on which the last name of the path stands, or of the nearest object around it.
    pub fn line(&self, path: &[&str]) -> Option<usize> {
        let mut path: Vec<String> = path.iter().map(|&name| name.to_owned()).collect();
        while !path.is_empty() {
            if let Some(&line) = self.lines.get(&path) {
                return Some(line);
            }
            path.pop();
        }
        None
    }
}

/// Walks through a text that is known to be JSON.
fn lines(text: &str) -> BTreeMap<Vec<String>, usize> {
    let mut found = BTreeMap::new();
    // Names of the objects around; a list has none.
    let mut around: Vec<Option<String>> = Vec::new();
    let mut line = 1;
    let mut last: Option<(String, usize)> = None;
    let mut characters = text.char_indices();
    while let Some((start, character)) = characters.next() {
        match character {
            '\n' => line += 1,
            '"' => {
                let mut escaped = false;
                let mut end = start + 1;
                for (place, character) in characters.by_ref() {
                    end = place;
                    match character {
                        _ if escaped => escaped = false,
                        '\\' => escaped = true,
                        '"' => break,
                        _ => {}
                    }
                }
                let literal = text.get(start..=end).unwrap_or_default();
                last = serde_json::from_str(literal).ok().map(|name| (name, line));
            }
            ':' => {
                if let (Some((name, line)), Some(inner)) = (last.take(), around.last_mut()) {
                    *inner = Some(name);
                    let path: Vec<String> = around.iter().flatten().cloned().collect();
                    found.insert(path, line);
                }
            }
            '{' | '[' => around.push(None),
            '}' | ']' => {
                around.pop();
            }
            ',' => {
                if let Some(inner) = around.last_mut() {
                    *inner = None;
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_know_their_line() {
        let text = "{\n \"A\": {\n  \"x:y,\\\"{\": \"3\",\n  \"B\": {\"C\": [\"a\", {\"D\": 1}]}\n },\n \"B\": \"C\"\n}\n";
        let document = Located::read("f", text).unwrap();
        assert_eq!(document.line(&["A"]), Some(2));
        assert_eq!(document.line(&["A", "x:y,\"{"]), Some(3));
        assert_eq!(document.line(&["A", "B", "C"]), Some(4));
        assert_eq!(document.line(&["B"]), Some(6));
        assert_eq!(document.line(&["A", "missing"]), Some(2));
        assert_eq!(document.text(&["A", "x:y,\"{"]), Some("3"));
        let (line, _) = Located::read("f", "{\n \"A\": }").unwrap_err();
        assert_eq!(line, 2);
        assert!(Located::read("f", "[]").is_err());
    }
}
