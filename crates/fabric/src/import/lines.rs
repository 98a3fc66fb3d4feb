//! Files of words: reads them, and remembers on which line each word stands.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::ImportError;

/// One word of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word<'a> {
    pub(crate) text: &'a str,
    pub(crate) line: usize,
}

/// The words of a file, in order.
#[derive(Debug)]
pub(crate) struct Words<'a> {
    pub(crate) file: &'a Path,
    words: Vec<Word<'a>>,
    next: usize,
}

impl<'a> Words<'a> {
    pub(crate) fn new(file: &'a Path, text: &'a str) -> Self {
        let words = (1..)
            .zip(text.lines())
            .flat_map(|(line, content)| {
                content
                    .split_whitespace()
                    .map(move |text| Word { text, line })
            })
            .collect();
        Self {
            file,
            words,
            next: 0,
        }
    }

    /// The next word, if there is one.
    pub(crate) fn peek(&self) -> Option<Word<'a>> {
        self.words.get(self.next).copied()
    }

    /// The next word, which has to be there.
    pub(crate) fn take(&mut self, field: &str, allowed: &str) -> Result<Word<'a>, ImportError> {
        let word = self.peek().ok_or_else(|| {
            let line = self.words.last().map(|word| word.line);
            ImportError::new(
                self.file,
                line,
                field,
                "missing at the end of the file",
                allowed,
            )
        })?;
        self.next += 1;
        Ok(word)
    }

    /// The next word, read as a `T`.
    pub(crate) fn read<T: FromStr>(
        &mut self,
        field: &str,
        allowed: &str,
    ) -> Result<T, ImportError> {
        let word = self.take(field, allowed)?;
        read(self.file, word, field, allowed)
    }

    /// Refuses words after the last one that is needed.
    pub(crate) fn end(&self, after: &str) -> Result<(), ImportError> {
        match self.peek() {
            None => Ok(()),
            Some(word) => Err(ImportError::new(
                self.file,
                Some(word.line),
                format!("what follows {after}"),
                format!("`{}`", word.text),
                "the end of the file",
            )
            .advise("does the count at the top fit?")),
        }
    }
}

/// Reads a word as a `T`.
pub(crate) fn read<T: FromStr>(
    file: &Path,
    word: Word<'_>,
    field: &str,
    allowed: &str,
) -> Result<T, ImportError> {
    word.text.parse().map_err(|_| {
        let found = format!("`{}`", word.text);
        ImportError::new(file, Some(word.line), field, found, allowed)
    })
}

/// Reads a whole text file.
pub(crate) fn read_text(path: &Path) -> Result<String, ImportError> {
    let bytes = std::fs::read(path).map_err(|error| unreadable(path, &error))?;
    String::from_utf8(bytes)
        .map_err(|_| ImportError::new(path, None, "the file", "not UTF-8", "a text file"))
}

fn unreadable(path: &Path, error: &std::io::Error) -> ImportError {
    let found = format!("not readable: {error}");
    ImportError::new(path, None, "the file", found, "a text file")
}

/// A path named in a file: relative to that file's folder.
pub(crate) fn beside(file: &Path, name: &str) -> PathBuf {
    file.parent().unwrap_or(Path::new("")).join(name)
}
