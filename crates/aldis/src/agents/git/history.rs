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
    /// Returns what changed since a commit; where none is known, since the last one before `began`. What
    /// was committed after the end is left out, and so is what is not committed, if something was. At most
    /// so many of each.
    pub(crate) fn changes_since(
        &self,
        base: Option<&str>,
        (began, ended): (Timestamp, Option<Timestamp>),
        most: usize,
    ) -> Changes {
        let head = || self.text(&["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
        let before = |moment: Timestamp| {
            let before = format!("--before=@{}", moment.as_millis().div_euclid(1_000));
            self.text(&["rev-list", "-1", &before, "HEAD", "--"]).ok().filter(|it| !it.is_empty())
        };
        let base = base.map(str::to_owned).or_else(|| before(began));
        let base = base.as_deref().unwrap_or(EMPTY_TREE);
        let last = ended.map(|ended| before(ended).unwrap_or_else(|| base.to_owned()));
        let last = last.filter(|last| head().is_some_and(|head| head != *last));
        let mut files = self.files_since(base, last.as_deref(), most).unwrap_or_default();
        if last.is_none() {
            files.extend(self.new_since(began, ended).unwrap_or_default());
        }
        files.truncate(most);
        let last = last.as_deref().unwrap_or("HEAD");
        Changes { commits: self.commits_between(base, last, most).unwrap_or_default(), files }
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

    /// Returns the commits since this one up to that one, the newest first.
    pub(crate) fn commits_between(
        &self,
        base: &str,
        last: &str,
        most: usize,
    ) -> Result<Vec<(String, Timestamp, String)>, GitError> {
        let range = if base == EMPTY_TREE { last.to_owned() } else { format!("{base}..{last}") };
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

    /// Returns the files that differ between two commits, or from a commit to the work tree.
    fn files_since(
        &self,
        base: &str,
        last: Option<&str>,
        most: usize,
    ) -> Result<Vec<ChangedFile>, GitError> {
        let args = ["diff", "-z", "--numstat", "--no-renames", "--no-ext-diff", base];
        let args: Vec<&str> = args.into_iter().chain(last).chain(["--"]).collect();
        let diff = self.run(&args, &[])?;
        let text = String::from_utf8_lossy(&diff.stdout).into_owned();
        let file = |line: &str| {
            let mut parts = line.splitn(3, '\t');
            let (added, removed) = (parts.next()?.parse().ok(), parts.next()?.parse().ok());
            Some((parts.next()?.to_owned(), added, removed))
        };
        Ok(text.split('\0').filter_map(file).take(most).collect())
    }

    /// Returns files that git does not know, and that were written since, and not after the end.
    fn new_since(
        &self,
        began: Timestamp,
        ended: Option<Timestamp>,
    ) -> Result<Vec<ChangedFile>, GitError> {
        let list = self.run(&["ls-files", "-z", "--others", "--exclude-standard", "--"], &[])?;
        let text = String::from_utf8_lossy(&list.stdout).into_owned();
        let is_new = |path: &&str| {
            let written = fs::metadata(self.root().join(path)).and_then(|it| it.modified());
            let since = written.ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
            since.is_some_and(|since| {
                let at = since.as_millis() as i64;
                at >= began.as_millis() && ended.is_none_or(|ended| at <= ended.as_millis())
            })
        };
        let paths = text.split('\0').filter(|path| !path.is_empty()).filter(is_new);
        Ok(paths.map(|path| (path.to_owned(), None, None)).collect())
    }
}
