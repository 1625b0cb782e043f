//! What changed in a repository since some moment.

use aldis_signal::time::Timestamp;

use super::{EMPTY_TREE, Git, GitError};

/// What changed: commits, the newest first, and files with their added and removed lines.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) commits: Vec<(String, Timestamp, String)>,
    pub(crate) files: Vec<(String, Option<u64>, Option<u64>)>,
}

impl Git {
    /// Returns what changed since a commit; where none is known, since the last one before that time. At
    /// most so many of each.
    pub(crate) fn changes_since(&self, base: Option<&str>, began: Timestamp, most: usize) -> Changes {
        let seconds = began.as_millis().div_euclid(1_000);
        let before = || {
            let before = format!("--before=@{seconds}");
            self.text(&["rev-list", "-1", &before, "HEAD", "--"]).ok().filter(|it| !it.is_empty())
        };
        let base = base.map(str::to_owned).or_else(before);
        Changes {
            commits: self.commits_since(base.as_deref(), most).unwrap_or_default(),
            files: self.files_since(base.as_deref(), most).unwrap_or_default(),
        }
    }

    fn commits_since(
        &self,
        base: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, Timestamp, String)>, GitError> {
        let range = base.map_or("HEAD".to_owned(), |base| format!("{base}..HEAD"));
        let count = format!("--max-count={most}");
        let log = self.run(&["log", "-z", "--format=%h %ct %s", &count, &range, "--"], &[])?;
        let text = String::from_utf8_lossy(&log.stdout).into_owned();
        let commit = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let (id, seconds) = (parts.next()?.to_owned(), parts.next()?.parse::<i64>().ok()?);
            let at = Timestamp::from_millis(seconds.checked_mul(1_000)?);
            Some((id, at, parts.next().unwrap_or_default().to_owned()))
        };
        Ok(text.split('\0').filter_map(commit).collect())
    }

    fn files_since(
        &self,
        base: Option<&str>,
        most: usize,
    ) -> Result<Vec<(String, Option<u64>, Option<u64>)>, GitError> {
        let base = base.unwrap_or(EMPTY_TREE);
        let args = ["diff", "-z", "--numstat", "--no-renames", "--no-ext-diff", base, "--"];
        let diff = self.run(&args, &[])?;
        let text = String::from_utf8_lossy(&diff.stdout).into_owned();
        let file = |line: &str| {
            let mut parts = line.splitn(3, '\t');
            let (added, removed) = (parts.next()?.parse().ok(), parts.next()?.parse().ok());
            Some((parts.next()?.to_owned(), added, removed))
        };
        Ok(text.split('\0').filter_map(file).take(most).collect())
    }
}
