//! As much of Redis's protocol (RESP2) as a reader of hashes speaks: SELECT and HGETALL.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use softfabric_operations::sources::sonic::Hash;

use crate::net;

/// A switch that says nothing for so long is not there.
const PATIENCE: Duration = Duration::from_secs(5);
/// No array or text of a switch's database is longer.
const LONGEST: usize = 1 << 24;

/// A connection to a server.
#[derive(Debug)]
pub(super) struct Redis {
    stream: BufReader<TcpStream>,
    database: Option<u8>,
}

/// What a server answers.
#[derive(Debug, PartialEq, Eq)]
enum Reply {
    Text(String),
    Nothing,
    List(Vec<Reply>),
}

impl Redis {
    /// Connects to `HOST:PORT`.
    ///
    /// # Errors
    /// If nobody is there.
    pub(super) fn connect(address: &str) -> io::Result<Self> {
        let stream = net::connect(address, PATIENCE)?;
        Ok(Self {
            stream: BufReader::new(stream),
            database: None,
        })
    }

    /// The hash of a key; empty if there is none.
    ///
    /// # Errors
    /// If the server goes away, refuses, or is none.
    pub(super) fn hash(&mut self, database: u8, key: &str) -> io::Result<Hash> {
        if self.database != Some(database) {
            self.ask(&["SELECT", &database.to_string()])?;
            self.database = Some(database);
        }
        let Reply::List(items) = self.ask(&["HGETALL", key])? else {
            return Err(malformed("HGETALL is not answered by a list"));
        };
        let mut hash = Hash::new();
        let mut items = items.into_iter();
        while let (Some(Reply::Text(name)), Some(Reply::Text(value))) = (items.next(), items.next())
        {
            hash.insert(name, value);
        }
        Ok(hash)
    }

    fn ask(&mut self, words: &[&str]) -> io::Result<Reply> {
        let mut request = format!("*{}\r\n", words.len());
        for word in words {
            request.push_str(&format!("${}\r\n{word}\r\n", word.len()));
        }
        let answer = self.stream.get_mut().write_all(request.as_bytes());
        let answer = answer.and_then(|()| reply(&mut self.stream, 0));
        answer.map_err(|error| net::explained(error, PATIENCE))
    }
}

fn malformed(problem: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, problem.into())
}

/// Reads one reply.
fn reply(input: &mut impl BufRead, depth: usize) -> io::Result<Reply> {
    let mut line = String::new();
    // A line that is one is short.
    input.take(LONGEST as u64).read_line(&mut line)?;
    let Some(line) = line.strip_suffix("\r\n") else {
        return Err(malformed("the server went away, or is no Redis"));
    };
    let length = |text: &str| -> io::Result<Option<usize>> {
        match text.parse::<i64>() {
            Ok(-1) => Ok(None),
            Ok(length) if (0..=LONGEST as i64).contains(&length) => Ok(Some(length as usize)),
            _ => Err(malformed(format!("`{text}` is no length"))),
        }
    };
    match line.split_at_checked(1) {
        Some(("+" | ":", text)) => Ok(Reply::Text(text.to_owned())),
        Some(("-", text)) => Err(malformed(format!("the server refuses: {text}"))),
        Some(("$", text)) => {
            let Some(length) = length(text)? else {
                return Ok(Reply::Nothing);
            };
            let mut bytes = vec![0; length + 2];
            input.read_exact(&mut bytes)?;
            bytes.truncate(length);
            let text = String::from_utf8(bytes);
            text.map(Reply::Text)
                .map_err(|_| malformed("a text is not UTF-8"))
        }
        Some(("*", text)) if depth == 0 => {
            let items = (0..length(text)?.unwrap_or(0)).map(|_| reply(input, depth + 1));
            Ok(Reply::List(items.collect::<io::Result<_>>()?))
        }
        _ => Err(malformed(format!("`{line}` is no reply of Redis"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_and_nonsense_is_refused() {
        let read = |text: &str| reply(&mut text.as_bytes(), 0);
        assert_eq!(read("+OK\r\n").unwrap(), Reply::Text("OK".to_owned()));
        assert_eq!(read("$-1\r\n").unwrap(), Reply::Nothing);
        let text = |text: &str| Reply::Text(text.to_owned());
        assert_eq!(
            read("*2\r\n$1\r\na\r\n$3\r\nb\r\n\r\n").unwrap(),
            Reply::List(vec![text("a"), text("b\r\n")])
        );
        for wrong in [
            "",
            "+OK",
            "hello\r\n",
            "$99999999999\r\n",
            "$5\r\nab\r\n",
            "*1\r\n*1\r\n+a\r\n",
            "-ERR no\r\n",
            "$x\r\n",
        ] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
