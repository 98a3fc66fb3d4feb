//! A table of text that fits the terminal: columns that matter less go away when it is narrow.

use std::borrow::Cow;

use crate::terminal::FAINT;

/// Two spaces between columns.
const GAP: usize = 2;

/// How a column is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Left,
    Right,
}

#[derive(Clone, Debug)]
struct Column {
    head: Cow<'static, str>,
    side: Side,
    /// The highest goes first when there is no room; 0 always stays.
    spare: u8,
}

/// A table that is being filled.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a column of words.
    #[must_use]
    pub(crate) fn words(mut self, head: impl Into<Cow<'static, str>>, spare: u8) -> Self {
        let (head, side) = (head.into(), Side::Left);
        self.columns.push(Column { head, side, spare });
        self
    }

    /// Adds a column of figures.
    #[must_use]
    pub(crate) fn figures(mut self, head: impl Into<Cow<'static, str>>, spare: u8) -> Self {
        let (head, side) = (head.into(), Side::Right);
        self.columns.push(Column { head, side, spare });
        self
    }

    /// Adds a row: a cell for each column.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let cells: Vec<String> = cells.into_iter().collect();
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells);
    }

    /// Whether all columns have all the room that they like.
    pub(crate) fn fits(&self, width: usize) -> bool {
        let columns = 0..self.columns.len();
        let needed: usize = columns.map(|column| self.natural_width(column) + GAP).sum();
        needed <= width + GAP
    }

    /// The table in at most `width` columns of the terminal. What is still too long then is cut, and says so.
    pub(crate) fn render(&self, width: usize) -> String {
        let shown = self.shown_columns(width);
        let widths = self.widths(&shown, width);
        let heads: Vec<&str> = shown
            .iter()
            .map(|&column| self.columns[column].head.as_ref())
            .collect();
        let mut text = format!("{FAINT}{}{FAINT:#}\n", self.line(&shown, &widths, &heads));
        for row in &self.rows {
            let cells: Vec<&str> = shown.iter().map(|&column| row[column].as_str()).collect();
            text.push_str(&self.line(&shown, &widths, &cells));
            text.push('\n');
        }
        text
    }

    /// The columns that there is room for.
    fn shown_columns(&self, width: usize) -> Vec<usize> {
        let mut shown: Vec<usize> = (0..self.columns.len()).collect();
        loop {
            let needed: usize = shown
                .iter()
                .map(|&column| self.natural_width(column) + GAP)
                .sum();
            let most_spare = shown
                .iter()
                .copied()
                .max_by_key(|&column| (self.columns[column].spare, column));
            match most_spare {
                Some(column) if needed > width + GAP && self.columns[column].spare > 0 => {
                    shown.retain(|&other| other != column);
                }
                _ => return shown,
            }
        }
    }

    /// Each column as wide as it likes, but that words give way where even the needed columns do not fit.
    fn widths(&self, shown: &[usize], width: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = shown
            .iter()
            .map(|&column| self.natural_width(column))
            .collect();
        let needed = widths.iter().sum::<usize>() + GAP * widths.len().saturating_sub(1);
        let mut excess = needed.saturating_sub(width);
        for (place, &column) in shown.iter().enumerate() {
            if self.columns[column].side == Side::Left {
                let given = excess.min(widths[place].saturating_sub(6));
                widths[place] -= given;
                excess -= given;
            }
        }
        widths
    }

    fn natural_width(&self, column: usize) -> usize {
        let cells = self.rows.iter().map(|row| length(&row[column]));
        cells
            .max()
            .unwrap_or(0)
            .max(length(&self.columns[column].head))
    }

    fn line(&self, shown: &[usize], widths: &[usize], cells: &[&str]) -> String {
        let mut text = String::new();
        for ((&column, &width), cell) in shown.iter().zip(widths).zip(cells) {
            if !text.is_empty() {
                text.push_str("  ");
            }
            let cell = cut(cell, width);
            match self.columns[column].side {
                Side::Left => text.push_str(&format!("{cell:<width$}")),
                Side::Right => text.push_str(&format!("{cell:>width$}")),
            }
        }
        text.trim_end().to_owned()
    }
}

fn length(text: &str) -> usize {
    text.chars().count()
}

fn cut(text: &str, width: usize) -> String {
    if length(text) <= width {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new()
            .words("group", 0)
            .figures("flows", 2)
            .figures("slowest", 0)
            .figures("bytes", 1);
        table.row([
            "incast".into(),
            "16".into(),
            "13.28 ms".into(),
            "160 MB".into(),
        ]);
        table.row([
            "a name much longer than that".into(),
            "1".into(),
            "9 µs".into(),
            "1 KB".into(),
        ]);
        table
    }

    fn widest(text: &str) -> usize {
        let plain = anstream::adapter::strip_str(text).to_string();
        plain.lines().map(length).max().unwrap()
    }

    #[test]
    fn columns_leave_in_their_order() {
        let table = table();
        let full = table.render(80);
        assert!(full.contains("flows") && full.contains("bytes"));
        let narrow = table.render(50);
        assert!(
            !narrow.contains("flows") && narrow.contains("bytes"),
            "{narrow}"
        );
        let narrower = table.render(24);
        assert!(
            !narrower.contains("bytes") && narrower.contains("slowest"),
            "{narrower}"
        );
        for width in [80, 50, 24] {
            let text = table.render(width);
            assert!(widest(&text) <= width, "{width}:\n{text}");
        }
    }

    #[test]
    fn figures_stand_under_each_other() {
        let plain = anstream::adapter::strip_str(&table().render(80)).to_string();
        let ends: Vec<usize> = plain.lines().map(length).collect();
        assert!(ends.iter().all(|&end| end == ends[0]), "{plain}");
    }
}
