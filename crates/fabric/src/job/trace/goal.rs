//! Schedules in the text form of GOAL (T. Hoefler, C. Siebert, A. Lumsdaine: "Group operation assembly language", ICPP 2009),
//! as LogGOPSim's `txt2bin` reads them.
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//! l1: calc 1000 cpu 0           nanoseconds
//! l2: send 64b to 1 tag 7
//! l2 requires l1                l2 begins when l1 is over
//! }
//! rank 1 {
//! l1: recv 64b from 0 tag 7
//! l2: calc 500
//! l2 irequires l1               l2 begins when l1 has begun
//! }
//! ```
//!
//! A send has begun when it is posted, and is over when it is acknowledged; a receive has begun when it is posted, and is over
//! when its message is there; a calculation has begun when its CPU takes it up. What LogGOPSim charges a CPU for a message (its
//! `o`) is `post_time` of the server here, which delays the message and occupies nothing, so the CPU of a send or receive says
//! nothing more. An empty message is sent as one byte. Of a rank's CPUs, 0 is its accelerator.

use std::path::{Path, PathBuf};

use rustc_hash::FxHashMap;
use softfabric_units::{Bytes, Span};

use super::message::{At, Ends, Message, Pair, Unpaired};
use super::wrong;
use crate::import::ImportError;
use crate::job::{Frontier, JobBuilder, Slicing};
use crate::plan::order;

/// A schedule.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// Its file, for messages.
    pub file: PathBuf,
    /// What each rank does.
    pub ranks: Vec<Vec<Operation>>,
}

/// One operation of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Its label, if it has one.
    pub label: Option<String>,
    /// Its line in the file.
    pub line: u32,
    /// What it does.
    pub action: Action,
    /// Operations of the same rank that must be over before it begins.
    pub requires: Vec<u32>,
    /// Operations of the same rank that must have begun before it begins.
    pub irequires: Vec<u32>,
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// One of the rank's CPUs is busy.
    Calculate {
        /// For how long.
        span: Span,
        /// Which one.
        cpu: u8,
    },
    /// Sends a message.
    Send(Message),
    /// Takes a message.
    Receive(Message),
}

/// Whether a text begins as a schedule does.
pub(super) fn begins(text: &str) -> bool {
    let scanner = &mut Scanner::new(Path::new(""), text);
    loop {
        match scanner.next().map(|token| token.kind) {
            Ok(Kind::NewLine) => {}
            Ok(Kind::Word("num_ranks" | "rank")) => return true,
            _ => return false,
        }
    }
}

/// Reads a schedule.
///
/// # Errors
/// If a line is none of the language, names a label or rank that is not there, or matches by whatever comes first (`-1`).
pub fn read(file: &Path, text: &str) -> Result<Schedule, ImportError> {
    let mut scanner = Scanner::new(file, text);
    let mut ranks: Option<Vec<Option<Vec<Operation>>>> = None;
    loop {
        let token = scanner.next()?;
        match (token.kind, &mut ranks) {
            (Kind::NewLine, _) => {}
            (Kind::End, _) => break,
            (Kind::Word("num_ranks"), None) => {
                let count = scanner.number("the number of ranks", 1, MOST_RANKS)?;
                ranks = Some(vec![None; count as usize]);
            }
            (Kind::Word("rank"), Some(ranks)) => {
                let line = token.line;
                let rank = scanner.number("the rank", 0, ranks.len() as u64 - 1)?;
                let place = &mut ranks[rank as usize];
                if place.is_some() {
                    let field = format!("rank {rank}");
                    let allowed = "there once";
                    return Err(wrong(file, Some(line), field, "there twice", allowed));
                }
                scanner.expect(Kind::Symbol('{'), "`{`")?;
                *place = Some(block(&mut scanner, rank as u32)?);
            }
            (_, None) => return Err(scanner.refuse(token, "`num_ranks` and a number")),
            (_, Some(_)) => return Err(scanner.refuse(token, "`rank`, a number and `{`")),
        }
    }
    let Some(ranks) = ranks else {
        return Err(wrong(
            file,
            None,
            "the file",
            "empty",
            "a schedule, which begins with `num_ranks`",
        ));
    };
    let count = ranks.len() as u32;
    let ranks: Vec<Vec<Operation>> = (ranks.into_iter()).map(Option::unwrap_or_default).collect();
    for (rank, operations) in (0..).zip(&ranks) {
        for operation in operations {
            let (Action::Send(message) | Action::Receive(message)) = operation.action else {
                continue;
            };
            if message.peer >= count || message.peer == rank {
                let field = format!("the other end of {} of rank {rank}", operation.name());
                let found = format!("rank {}", message.peer);
                let allowed = format!("another rank, of 0 to {}", count - 1);
                return Err(wrong(file, Some(operation.line), field, found, allowed));
            }
        }
    }
    Ok(Schedule {
        file: file.to_owned(),
        ranks,
    })
}

/// The most ranks that a schedule may have.
const MOST_RANKS: u64 = 1 << 20;

/// What a rank does, up to `}`.
fn block(scanner: &mut Scanner<'_>, rank: u32) -> Result<Vec<Operation>, ImportError> {
    let mut operations: Vec<Operation> = Vec::new();
    let mut labels: FxHashMap<&str, u32> = FxHashMap::default();
    // Which label waits for which, on what line, and for its beginning only.
    let mut waits = Vec::new();
    loop {
        let token = scanner.next()?;
        let word = match token.kind {
            Kind::NewLine => continue,
            Kind::Symbol('}') => break,
            Kind::Word(word) => word,
            _ => return Err(scanner.refuse(token, STATEMENT)),
        };
        if let Some(action) = action(scanner, word)? {
            operations.push(Operation::new(None, token.line, action));
            continue;
        }
        let second = scanner.next()?;
        match second.kind {
            Kind::Symbol(':') => {
                let verb = scanner.next()?;
                let Kind::Word(name) = verb.kind else {
                    return Err(scanner.refuse(verb, "`calc`, `send` or `recv`"));
                };
                let Some(action) = action(scanner, name)? else {
                    return Err(scanner.refuse(verb, "`calc`, `send` or `recv`"));
                };
                let number = operations.len() as u32;
                if let Some(first) = labels.insert(word, number) {
                    let first = operations[first as usize].line;
                    let found = format!("at line {first}, too");
                    let field = format!("label `{word}` of rank {rank}");
                    let allowed = "there once in a rank";
                    return Err(wrong(scanner.file, Some(token.line), field, found, allowed));
                }
                operations.push(Operation::new(Some(word), token.line, action));
            }
            Kind::Word(kind @ ("requires" | "irequires")) => {
                let other = scanner.next()?;
                let Kind::Word(other) = other.kind else {
                    return Err(scanner.refuse(other, "a label"));
                };
                scanner.line_ends()?;
                waits.push((token.line, word, other, kind == "irequires"));
            }
            _ => return Err(scanner.refuse(second, "`:`, `requires` or `irequires`")),
        }
    }
    for (line, label, other, begins) in waits {
        let find = |label: &str| {
            labels.get(label).copied().ok_or_else(|| {
                let field = format!("label `{label}`");
                let found = format!("not there in rank {rank}");
                wrong(
                    scanner.file,
                    Some(line),
                    field,
                    found,
                    "a label of the same rank",
                )
            })
        };
        let (waiting, other) = (find(label)?, find(other)?);
        let waiting = &mut operations[waiting as usize];
        match begins {
            true => waiting.irequires.push(other),
            false => waiting.requires.push(other),
        }
    }
    Ok(operations)
}

const STATEMENT: &str = "`calc`, `send`, `recv`, a label, or `}`";

/// The rest of an operation, if its first word is that of one.
fn action(scanner: &mut Scanner<'_>, verb: &str) -> Result<Option<Action>, ImportError> {
    let action = match verb {
        "calc" => {
            let nanos = scanner.number("the time of a calculation in ns", 0, LONGEST)?;
            let [_, cpu, _] = scanner.options(&["cpu"])?;
            Action::Calculate {
                span: Span::nanos(nanos),
                cpu: cpu as u8,
            }
        }
        "send" | "recv" => {
            let line = scanner.line;
            let bytes = scanner.number("the length of a message", 0, LARGEST)?;
            scanner.expect(Kind::Word("b"), "`b`, for bytes")?;
            let direction = if verb == "send" { "to" } else { "from" };
            scanner.expect(Kind::Word(direction), &format!("`{direction}` and a rank"))?;
            let peer = scanner.number("the rank at the other end", 0, u32::MAX.into())?;
            let [tag, _, nic] = scanner.options(&["tag", "cpu", "nic"])?;
            if nic != 0 {
                let allowed = "0: a rank has one NIC";
                return Err(wrong(
                    scanner.file,
                    Some(line),
                    "the NIC",
                    nic.to_string(),
                    allowed,
                ));
            }
            let message = Message {
                peer: peer as u32,
                bytes: Bytes::new(bytes),
                tag: tag as u32,
            };
            match verb {
                "send" => Action::Send(message),
                _ => Action::Receive(message),
            }
        }
        _ => return Ok(None),
    };
    Ok(Some(action))
}

/// The longest calculation, in nanoseconds: about 11 days.
const LONGEST: u64 = 1_000_000_000_000_000;

/// The largest message.
const LARGEST: u64 = 1 << 40;

impl Operation {
    fn new(label: Option<&str>, line: u32, action: Action) -> Self {
        Self {
            label: label.map(str::to_owned),
            line,
            action,
            requires: Vec::new(),
            irequires: Vec::new(),
        }
    }

    /// What it is called in messages.
    fn name(&self) -> String {
        match &self.label {
            Some(label) => format!("`{label}`"),
            None => format!("the operation at line {}", self.line),
        }
    }
}

impl Schedule {
    /// Adds what every rank does.
    pub(super) fn add(
        &self,
        builder: &mut JobBuilder,
        slicing: Slicing,
        after: &Frontier,
    ) -> Result<Frontier, ImportError> {
        let pairs = self.pairs()?;
        self.refuse_circles(&pairs)?;
        let mut tasks: Vec<Vec<u32>> = (self.ranks.iter())
            .map(|operations| vec![u32::MAX; operations.len()])
            .collect();
        for (rank, operations) in (0..).zip(&self.ranks) {
            for (place, operation) in operations.iter().enumerate() {
                if let Action::Calculate { span, cpu } = operation.action {
                    tasks[rank as usize][place] = builder.compute_on(cpu, rank, span, &[]);
                }
            }
        }
        // Both ends of a channel get their messages in the order of its pairs.
        for pair in &pairs {
            let ((from, send), (to, receive)) = (pair.send, pair.receive);
            let Action::Send(message) = self.ranks[from as usize][send as usize].action else {
                continue;
            };
            let (messages, slice) = slicing.cut(message.bytes);
            let sent = builder.send((from, to), (messages, slice), Vec::new(), &[]);
            let taken = builder.receive((from, to), messages, slicing.handling, &[]);
            tasks[from as usize][send as usize] = sent;
            tasks[to as usize][receive as usize] = taken;
        }
        let mut ends = after.clone();
        for ((operations, tasks), ends) in self.ranks.iter().zip(&tasks).zip(&mut ends) {
            let mut last = vec![true; operations.len()];
            for (operation, task) in operations.iter().zip(tasks) {
                let of = |others: &[u32]| -> Vec<u32> {
                    others.iter().map(|other| tasks[*other as usize]).collect()
                };
                if operation.requires.is_empty() && operation.irequires.is_empty() {
                    builder.begin_after(*task, ends.iter().copied());
                }
                builder.begin_after(*task, of(&operation.requires));
                builder.begin_with(*task, of(&operation.irequires));
                for before in &operation.requires {
                    last[*before as usize] = false;
                }
            }
            if !tasks.is_empty() {
                let left = tasks.iter().zip(last).filter(|(_, last)| *last);
                *ends = left.map(|(task, _)| *task).collect();
            }
        }
        Ok(ends)
    }

    /// Which send is for which receive: the n-th of a rank to another with a tag, in an order in which the rank can do them.
    fn pairs(&self) -> Result<Vec<Pair>, ImportError> {
        let mut ends = Ends::default();
        for (rank, operations) in (0..).zip(&self.ranks) {
            let waits: Vec<Vec<u32>> = (operations.iter())
                .map(|operation| {
                    let before = operation.requires.iter().chain(&operation.irequires);
                    before.copied().collect()
                })
                .collect();
            let order = order(&waits)
                .map_err(|circle| self.circle(circle.into_iter().map(|place| (rank, place))))?;
            for place in order {
                match operations[place as usize].action {
                    Action::Send(message) => ends.send((rank, place), message),
                    Action::Receive(message) => ends.receive((rank, place), message),
                    Action::Calculate { .. } => {}
                }
            }
        }
        ends.pairs().map_err(|unpaired| self.unpaired(unpaired))
    }

    fn unpaired(&self, unpaired: Unpaired) -> ImportError {
        let operation = |(rank, place): At| &self.ranks[rank as usize][place as usize];
        let (at, field, found, allowed) = match unpaired {
            Unpaired::Sent {
                send,
                to,
                tag,
                received,
            } => (
                send,
                format!("{} of rank {}", operation(send).name(), send.0),
                format!("a message to rank {to} with tag {tag}, which takes {received} such"),
                format!("a message that rank {to} receives"),
            ),
            Unpaired::Awaited {
                receive,
                from,
                tag,
                sent,
            } => (
                receive,
                format!("{} of rank {}", operation(receive).name(), receive.0),
                format!("a receive from rank {from} with tag {tag}, which sends {sent} such"),
                format!("a receive of what rank {from} sends"),
            ),
            Unpaired::Short { pair, sent, taken } => {
                let (sending, receiving) = (operation(pair.send), operation(pair.receive));
                (
                    pair.receive,
                    format!(
                        "the length of {} of rank {}",
                        receiving.name(),
                        pair.receive.0
                    ),
                    taken.to_string(),
                    format!(
                        "at least {sent}, what {} of rank {} sends (line {})",
                        sending.name(),
                        pair.send.0,
                        sending.line
                    ),
                )
            }
        };
        self.wrong(operation(at), field, found, allowed)
    }

    /// Refuses ranks that wait for each other's messages in a circle.
    fn refuse_circles(&self, pairs: &[Pair]) -> Result<(), ImportError> {
        // Twice each operation: its beginning, and its end.
        let mut first = Vec::with_capacity(self.ranks.len());
        let mut names = Vec::new();
        for (rank, operations) in (0..).zip(&self.ranks) {
            first.push(names.len() as u32);
            names.extend((0..operations.len() as u32).map(|place| (rank, place)));
        }
        let mut waits = vec![Vec::new(); 2 * names.len()];
        for (rank, operations) in (0..).zip(&self.ranks) {
            let begin = |place: u32| 2 * (first[rank as usize] + place);
            for (place, operation) in (0..).zip(operations) {
                let waits_of = &mut waits[begin(place) as usize];
                waits_of.extend(operation.requires.iter().map(|other| begin(*other) + 1));
                waits_of.extend(operation.irequires.iter().map(|other| begin(*other)));
                waits[begin(place) as usize + 1].push(begin(place));
            }
        }
        for pair in pairs {
            let at = |(rank, place): (u32, u32)| 2 * (first[rank as usize] + place);
            waits[at(pair.receive) as usize + 1].push(at(pair.send));
        }
        order(&waits).map(|_| ()).map_err(|circle| {
            let mut circle: Vec<u32> = circle.into_iter().map(|step| step / 2).collect();
            circle.dedup();
            self.circle(circle.into_iter().map(|number| names[number as usize]))
        })
    }

    fn circle(&self, circle: impl Iterator<Item = (u32, u32)>) -> ImportError {
        let circle: Vec<(u32, u32)> = circle.collect();
        let name = |(rank, place): (u32, u32)| {
            let operation = &self.ranks[rank as usize][place as usize];
            format!(
                "{} of rank {rank} (line {})",
                operation.name(),
                operation.line
            )
        };
        let mut names: Vec<String> = circle.iter().take(8).map(|at| name(*at)).collect();
        if circle.len() > names.len() {
            names.push("…".to_owned());
        }
        names.push("itself".to_owned());
        let (rank, place) = circle[0];
        let found = format!("waiting for {}", names[1..].join(", which waits for "));
        let allowed = "without a circle: take one of these dependencies away";
        let operation = &self.ranks[rank as usize][place as usize];
        self.wrong(
            operation,
            format!("{} of rank {rank}", operation.name()),
            found,
            allowed,
        )
    }

    fn wrong(
        &self,
        operation: &Operation,
        field: String,
        found: String,
        allowed: impl Into<String>,
    ) -> ImportError {
        wrong(&self.file, Some(operation.line), field, found, allowed)
    }
}

/// Takes a text apart.
#[derive(Debug)]
struct Scanner<'a> {
    file: &'a Path,
    text: &'a str,
    line: u32,
    ahead: Option<Token<'a>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    kind: Kind<'a>,
    line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind<'a> {
    Word(&'a str),
    /// Digits, perhaps with a sign.
    Number(&'a str),
    Symbol(char),
    NewLine,
    End,
}

impl<'a> Scanner<'a> {
    fn new(file: &'a Path, text: &'a str) -> Self {
        Self {
            file,
            text,
            line: 1,
            ahead: None,
        }
    }

    fn next(&mut self) -> Result<Token<'a>, ImportError> {
        if let Some(token) = self.ahead.take() {
            return Ok(token);
        }
        loop {
            self.text = self.text.trim_start_matches([' ', '\t', '\r']);
            if self.text.starts_with("//") {
                self.skip(self.text.find('\n').unwrap_or(self.text.len()));
            } else if self.text.starts_with("/*") {
                let Some(end) = self.text.find("*/") else {
                    return Err(self.wrong("a comment", "without an end", "closed with `*/`"));
                };
                self.line += self.text[..end].matches('\n').count() as u32;
                self.skip(end + 2);
            } else {
                break;
            }
        }
        let line = self.line;
        let Some(first) = self.text.chars().next() else {
            return Ok(Token {
                kind: Kind::End,
                line,
            });
        };
        let while_in = |text: &'a str, from: usize, belongs: fn(char) -> bool| -> usize {
            text[from..]
                .find(|next| !belongs(next))
                .map_or(text.len(), |end| from + end)
        };
        let (length, kind): (usize, fn(&'a str) -> Kind<'a>) = match first {
            '\n' => {
                self.line += 1;
                (1, |_| Kind::NewLine)
            }
            '0'..='9' | '-' => {
                let end = while_in(self.text, 1, |next| next.is_ascii_digit());
                (end, |text| Kind::Number(text))
            }
            'a'..='z' | 'A'..='Z' => {
                let belongs = |next: char| next.is_ascii_alphanumeric() || next == '_';
                (while_in(self.text, 1, belongs), |text| Kind::Word(text))
            }
            _ => (first.len_utf8(), |text| {
                Kind::Symbol(text.chars().next().unwrap_or(' '))
            }),
        };
        let text = &self.text[..length];
        self.skip(length);
        Ok(Token {
            kind: kind(text),
            line,
        })
    }

    fn skip(&mut self, bytes: usize) {
        self.text = &self.text[bytes..];
    }

    fn expect(&mut self, kind: Kind<'_>, allowed: &str) -> Result<(), ImportError> {
        let token = self.next()?;
        match token.kind == kind {
            true => Ok(()),
            false => Err(self.refuse(token, allowed)),
        }
    }

    fn number(&mut self, field: &str, least: u64, most: u64) -> Result<u64, ImportError> {
        let allowed = format!("a whole number from {least} to {most}");
        let token = self.next()?;
        let Kind::Number(text) = token.kind else {
            return Err(self.refuse(token, &format!("{field}, {allowed}")));
        };
        match text.parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            _ => {
                let error = wrong(
                    self.file,
                    Some(token.line),
                    field,
                    format!("`{text}`"),
                    allowed,
                );
                Err(match text {
                    "-1" => error.advise(
                        "what matches whatever comes first cannot be matched before the run: \
                         name the rank and the tag",
                    ),
                    _ => error,
                })
            }
        }
    }

    /// Tag, CPU and NIC up to the end of the line, each zero where it is not given, of those that may be given.
    fn options(&mut self, allowed: &[&str]) -> Result<[u64; 3], ImportError> {
        let mut values = [None; 3];
        loop {
            let token = self.next()?;
            let place = match token.kind {
                Kind::NewLine | Kind::End => break,
                // Schedules close a rank on the line of its last operation, too.
                Kind::Symbol('}') => {
                    self.ahead = Some(token);
                    break;
                }
                Kind::Word("tag") if allowed.contains(&"tag") => 0,
                Kind::Word("cpu") if allowed.contains(&"cpu") => 1,
                Kind::Word("nic") if allowed.contains(&"nic") => 2,
                _ => {
                    let allowed = format!("{} or the end of the line", allowed.join(", "));
                    return Err(self.refuse(token, &allowed));
                }
            };
            let (field, most) = [
                ("the tag", u64::from(u32::MAX)),
                ("the CPU", u64::from(u8::MAX)),
                ("the NIC", u64::from(u8::MAX)),
            ][place];
            if values[place].is_some() {
                return Err(wrong(
                    self.file,
                    Some(token.line),
                    field,
                    "there twice",
                    "there once",
                ));
            }
            values[place] = Some(self.number(field, 0, most)?);
        }
        Ok(values.map(Option::unwrap_or_default))
    }

    fn line_ends(&mut self) -> Result<(), ImportError> {
        let token = self.next()?;
        match token.kind {
            Kind::NewLine | Kind::End => Ok(()),
            Kind::Symbol('}') => {
                self.ahead = Some(token);
                Ok(())
            }
            _ => Err(self.refuse(token, "the end of the line")),
        }
    }

    fn refuse(&self, token: Token<'_>, allowed: &str) -> ImportError {
        let found = match token.kind {
            Kind::Word(text) | Kind::Number(text) => format!("`{text}`"),
            Kind::Symbol(symbol) => format!("`{symbol}`"),
            Kind::NewLine => "the end of the line".to_owned(),
            Kind::End => "the end of the file".to_owned(),
        };
        wrong(
            self.file,
            Some(token.line),
            "what comes next",
            found,
            allowed,
        )
    }

    fn wrong(&self, field: &str, found: impl Into<String>, allowed: &str) -> ImportError {
        wrong(self.file, Some(self.line), field, found, allowed)
    }
}
