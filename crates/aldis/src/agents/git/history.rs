//! What changed in a repository since some moment.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

use aldis_signal::time::Timestamp;

use super::{EMPTY_TREE, Git, GitError};

/// A file with its added and removed lines, where it is text that git knows.
type ChangedFile = (String, Option<u64>, Option<u64>);

/// What changed: commits, the newest first, and files with their added and removed lines.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    pub(crate) commits: Vec<(String, Timestamp, String)>,
    pub(crate) files: Vec<ChangedFile>,
}

impl Git {
    /// Returns what changed since a commit; where none is known, since the last one before that time. At
    /// most so many of each.
    pub(crate) fn changes_since(
        &self,
        base: Option<&str>,
        began: Timestamp,
        most: usize,
    ) -> Changes {
        let seconds = began.as_millis().div_euclid(1_000);
        let before = || {
            let before = format!("--before=@{seconds}");
            self.text(&["rev-list", "-1", &before, "HEAD", "--"]).ok().filter(|it| !it.is_empty())
        };
        let base = base.map(str::to_owned).or_else(before);
        let base = base.as_deref().unwrap_or(EMPTY_TREE);
        let mut files = self.files_since(base, most).unwrap_or_default();
        files.extend(self.new_since(began).unwrap_or_default());
        files.truncate(most);
        Changes { commits: self.commits_since(base, most).unwrap_or_default(), files }
    }

    /// Returns whether the repository has this commit.
    pub(crate) fn has_object(&self, commit: &str) -> bool {
        let wanted = format!("{commit}^{{commit}}");
        self.call(&["cat-file", "-e", "--end-of-options", &wanted], &[])
            .is_ok_and(|done| done.status.success())
    }

    /// Returns a file as it is in a commit, if it is there.
    pub(crate) fn file_at(&self, commit: &str, path: &Path) -> Option<Vec<u8>> {
        let wanted = format!("{commit}:{}", path.to_str()?);
        let blob = self.run(&["cat-file", "blob", "--end-of-options", &wanted], &[]).ok()?;
        (!blob.truncated).then_some(blob.stdout)
    }

    /// Returns the branch that is checked out; nothing between branches.
    pub(crate) fn branch(&self) -> Option<String> {
        self.text(&["symbolic-ref", "--quiet", "--short", "HEAD"]).ok().filter(|it| !it.is_empty())
    }

    /// Returns the commits since this one, the newest first.
    pub(crate) fn commits_since(
        &self,
        base: &str,
        most: usize,
    ) -> Result<Vec<(String, Timestamp, String)>, GitError> {
        let range = if base == EMPTY_TREE { "HEAD".to_owned() } else { format!("{base}..HEAD") };
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

    fn files_since(&self, base: &str, most: usize) -> Result<Vec<ChangedFile>, GitError> {
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

    /// Returns files that git does not know, and that were written since.
    fn new_since(&self, began: Timestamp) -> Result<Vec<ChangedFile>, GitError> {
        let list = self.run(&["ls-files", "-z", "--others", "--exclude-standard", "--"], &[])?;
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        let is_new = |path: &&str| {
            let written = fs::metadata(self.root().join(path)).and_then(|it| it.modified());
            let since = written.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            since.is_some_and(|since| since.as_millis() as i64 >= began.as_millis())
        };
        let paths = text.split('\0').filter(|path| !path.is_empty()).filter(is_new);
        Ok(paths.map(|path| (path.to_owned(), None, None)).collect())
    }
}
