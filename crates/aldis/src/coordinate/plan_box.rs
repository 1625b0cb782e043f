//! The check boxes of a Markdown plan: ticked when their tasks are complete, one byte each.

use std::fs::OpenOptions;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use serde::{Deserialize, Serialize};

const OPEN: &[u8] = b"[ ]";
const TICKED: &[u8] = b"[x]";

/// The line of a task in a plan, as it was when the delivery began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanBox {
    /// Its number, from 1.
    pub line: usize,
    /// What it holds, without the line end.
    pub text: String,
}

/// What became of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tick {
    /// It is ticked now.
    Done,
    /// It was ticked before.
    Before,
    /// The line is not in the plan any more.
    Gone,
}

impl PlanBox {
    /// Ticks the box in this file, if its line is still there. No other byte changes.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be read or written.
    pub(crate) fn tick(&self, plan: &Path) -> io::Result<Tick> {
        let mut file = OpenOptions::new().read(true).write(true).open(plan)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text)?;
        let open = self.text.as_bytes();
        let Some(column) = open.windows(OPEN.len()).position(|part| part == OPEN) else {
            return Ok(Tick::Gone);
        };
        let Some(start) = self.find(&text, open) else {
            let ticked = [&open[..column], TICKED, &open[column + OPEN.len()..]].concat();
            return Ok(self.find(&text, &ticked).map_or(Tick::Gone, |_| Tick::Before));
        };
        file.seek(SeekFrom::Start(u64::try_from(start + column + 1).unwrap_or(u64::MAX)))?;
        file.write_all(&TICKED[1..2])?;
        file.sync_all()?;
        Ok(Tick::Done)
    }

    /// Finds the first byte of a line: in its own place, else wherever it is, if it is there once.
    fn find(&self, text: &[u8], wanted: &[u8]) -> Option<usize> {
        let mut start = 0;
        let lines = text.split_inclusive(|byte| *byte == b'\n').map(|line| {
            start += line.len();
            let bare = line.strip_suffix(b"\n").unwrap_or(line);
            (start - line.len(), bare.strip_suffix(b"\r").unwrap_or(bare))
        });
        let same: Vec<(usize, usize)> = (1..)
            .zip(lines)
            .filter(|(_, (_, line))| *line == wanted)
            .map(|(number, (start, _))| (number, start))
            .collect();
        match &*same {
            [(_, start)] => Some(*start),
            _ => same.iter().find(|(number, _)| *number == self.line).map(|(_, start)| *start),
        }
    }
}

#[cfg(test)]
mod tests {
    //! Which byte changes, and when none does.

    use std::fs;

    use super::*;

    #[test]
    fn one_byte_changes_or_none() {
        let item = |line: usize, text: &str| PlanBox { line, text: text.to_owned() };
        let csv = item(3, "- [ ] csv: Write the [ ] column");
        for (name, before, wanted, after) in [
            (
                "in its place, with any line ends",
                "# P\r\n\r\n- [ ] csv: Write the [ ] column\r\n- [ ] b\n",
                Tick::Done,
                "# P\r\n\r\n- [x] csv: Write the [ ] column\r\n- [ ] b\n",
            ),
            (
                "moved to the end",
                "a\n\n\n\n- [ ] csv: Write the [ ] column",
                Tick::Done,
                "a\n\n\n\n- [x] csv: Write the [ ] column",
            ),
            (
                "ticked before",
                "- [x] csv: Write the [ ] column\n",
                Tick::Before,
                "- [x] csv: Write the [ ] column\n",
            ),
            (
                "reworded",
                "# P\n\n- [ ] csv: Write it\n",
                Tick::Gone,
                "# P\n\n- [ ] csv: Write it\n",
            ),
        ] {
            let file = tempfile::NamedTempFile::new().unwrap();
            fs::write(file.path(), before).unwrap();
            assert_eq!(csv.tick(file.path()).unwrap(), wanted, "{name}");
            assert_eq!(fs::read_to_string(file.path()).unwrap(), after, "{name}");
        }
        // Of two that read the same, the one in its place.
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "1. [ ] Test\n2. [ ] x\n1. [ ] Test\n").unwrap();
        assert_eq!(item(3, "1. [ ] Test").tick(file.path()).unwrap(), Tick::Done);
        let text = fs::read_to_string(file.path()).unwrap();
        assert_eq!(text, "1. [ ] Test\n2. [ ] x\n1. [x] Test\n");
        assert!(csv.tick(Path::new("/nowhere/plan.md")).is_err());
    }
}
