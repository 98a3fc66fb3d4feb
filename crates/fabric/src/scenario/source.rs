//! The text of a scenario, and where in it a field stands.

use std::ops::Range;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text that a scenario came from.
///
/// Two sources are always equal: where a scenario came from does not change what it says.
#[derive(Clone, Debug, Default)]
pub(super) struct Source {
    /// The name of the file, for messages.
    pub(super) file: String,
    /// Its text.
    pub(super) text: Arc<str>,
    /// The table of `[compare]` that was laid over the rest, if one was.
    pub(super) overlay: Option<&'static str>,
}

impl PartialEq for Source {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Source {
    /// Line and column, both from one, of a place in the text.
    pub(super) fn line_and_column(&self, at: usize) -> (usize, usize) {
        let before = &self.text[..at.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (line, before[start..].chars().count() + 1)
    }

    /// Where the field of a path such as `workload[1].bytes` stands: its value, or what of its path is there. What was laid
    /// over the rest comes first.
    pub(super) fn locate(&self, path: &str) -> Option<Range<usize>> {
        let laid_over = (self.overlay)
            .and_then(|overlay| self.find(&format!("compare.{overlay}.{path}"), true));
        laid_over.or_else(|| self.find(path, false))
    }

    /// As [`Self::locate`] in the text as it stands; `whole`: only if all of the path is there.
    fn find(&self, path: &str, whole: bool) -> Option<Range<usize>> {
        let (document, _) = DeTable::parse_recoverable(&self.text);
        let mut found = None;
        let mut steps = steps(path);
        let mut value = {
            let step = steps.next()?;
            child_of_table(document.get_ref(), &step)?
        };
        found.replace(value.span());
        for step in steps {
            let Some(next) = child(value.get_ref(), &step) else {
                if whole {
                    return None;
                }
                break;
            };
            value = next;
            found.replace(value.span());
        }
        found
    }
}

enum Step {
    Key(String),
    Place(usize),
}

fn steps(path: &str) -> impl Iterator<Item = Step> + '_ {
    path.split('.').flat_map(|part| {
        let (key, places) = part.split_once('[').unwrap_or((part, ""));
        let places = (places.split(['[', ']']))
            .filter_map(|place| place.parse().ok())
            .map(Step::Place);
        std::iter::once(Step::Key(key.to_owned())).chain(places)
    })
}

fn child<'a, 'i>(value: &'a DeValue<'i>, step: &Step) -> Option<&'a Spanned<DeValue<'i>>> {
    match (value, step) {
        (DeValue::Table(table), Step::Key(_)) => child_of_table(table, step),
        (DeValue::Array(array), Step::Place(place)) => array.get(*place),
        _ => None,
    }
}

fn child_of_table<'a, 'i>(table: &'a DeTable<'i>, step: &Step) -> Option<&'a Spanned<DeValue<'i>>> {
    let Step::Key(wanted) = step else {
        return None;
    };
    (table.iter())
        .find(|(key, _)| key.get_ref() == wanted)
        .map(|(_, value)| value)
}
