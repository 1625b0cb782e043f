//! Git, within bounds.
//!
//! It runs what the user's own git would run in that repository (filters, merge drivers), but no
//! hook, no file-system monitor, no prompt and no fetch; it has a deadline and a process group of its
//! own, which goes with it. Names come after `--` and lists are separated by NUL. Looking changes
//! nothing, and partial work is kept without touching the index, the work tree or the current branch.

mod checkout;
mod history;
mod remote;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use aldis_machine::phases::digest;
use aldis_machine::run::WorkTree;
use aldis_process::{BoundedError, BoundedOutput, Cancellation, Mark, run_cancellable};

pub(crate) use self::remote::Push;

/// Settings that keep a repository's own configuration from running anything.
const SAFE: [&str; 5] = [
    "commit.gpgsign=false",
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "protocol.allow=never",
    "core.untrackedCache=false",
];
/// Leaves out the reports that wait in the work tree: they are no work.
const NO_SPOOL: &str = ":(top,exclude).aldis/spool";
/// How long one call may take: a filter may wait for a network or a password for ever.
const DEADLINE: Duration = Duration::from_secs(30);
/// How much of what it prints is read.
const OUTPUT_MAX: usize = 64 << 20;
/// The tree without files, for a run that began before the first commit.
const EMPTY_TREE: &str = "4b825dc642cb6eb9a060e54bf8d69288fbee4904";
/// How much of a file that git does not compare is searched for conflict markers.
const FILE_MAX: u64 = 1 << 20;
/// Where partial work goes.
const BRANCH: &str = "aldis/partial-";
/// How often one run can leave partial work.
const BRANCHES_MAX: u32 = 1_000;

/// Who commits.
const IDENTITY: [(&str, &str); 4] = [
    ("GIT_AUTHOR_NAME", "Aldis"),
    ("GIT_AUTHOR_EMAIL", "aldis@localhost"),
    ("GIT_COMMITTER_NAME", "Aldis"),
    ("GIT_COMMITTER_EMAIL", "aldis@localhost"),
];

/// The commit since which conflict markers are looked for; none where there was none yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Since(pub(crate) Option<String>);

/// How a merge went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Merge {
    /// It is merged, or was before.
    Done,
    /// These files changed on both sides; nothing was changed.
    Conflicts(Vec<String>),
}

/// A work tree.
#[derive(Clone, Debug)]
pub(crate) struct Git {
    directory: PathBuf,
    /// Ends calls that nobody waits for any more.
    cancellation: Cancellation,
    /// The run it works for: whoever takes that over ends calls of a coordinator that was killed.
    owner: Option<Mark>,
}

/// Why git did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum GitError {
    /// It could not be started, or did not end in time.
    #[error(transparent)]
    Bounded(#[from] BoundedError),
    /// A directory that it needs could not be made.
    #[error("a directory for git: {0}")]
    Directory(#[from] io::Error),
    /// It refused.
    #[error("git {what}: {said}")]
    Refused {
        /// What it was asked.
        what: String,
        /// What it said.
        said: String,
    },
}

impl Git {
    /// Returns the work tree around a directory; nothing where there is none, or no git.
    pub(crate) fn around(directory: &Path) -> Option<Self> {
        Self::around_until(directory, Cancellation::default())
    }

    /// As [`around`](Self::around), for whoever may lose interest.
    pub(crate) fn around_until(directory: &Path, cancellation: Cancellation) -> Option<Self> {
        let here = Self { directory: directory.to_owned(), cancellation, owner: None };
        let root = here.text(&["rev-parse", "--show-toplevel"]).ok()?;
        Some(here.at(Path::new(&root)))
    }

    /// Returns another work tree of the repository, cancelled together with this one.
    pub(crate) fn at(&self, directory: &Path) -> Self {
        Self { directory: directory.to_owned(), ..self.clone() }
    }

    /// Returns it as it works for the owner of this mark.
    pub(crate) fn owned_by(self, owner: Mark) -> Self {
        Self { owner: Some(owner), ..self }
    }

    /// Returns the root of the work tree.
    pub(crate) fn root(&self) -> &Path {
        &self.directory
    }

    /// Returns what ends its calls.
    pub(crate) fn cancellation(&self) -> &Cancellation {
        &self.cancellation
    }

    /// Whether anything was ever committed on the current branch.
    pub(crate) fn has_commit(&self) -> bool {
        self.text(&["rev-parse", "--verify", "--quiet", "HEAD"]).is_ok()
    }

    /// Whether a path is left out of the repository.
    pub(crate) fn ignores(&self, path: &Path) -> bool {
        let args = [OsStr::new("check-ignore"), OsStr::new("--quiet"), OsStr::new("--")];
        let done = self.call(&[&args[..], &[path.as_os_str()]].concat(), &[]);
        done.is_ok_and(|done| done.status.success())
    }

    /// Looks at the work tree. With `markers`, it is searched for conflict markers that came since
    /// that commit: committed, staged, or in a file.
    pub(crate) fn look(&self, markers: Option<&Since>) -> Result<WorkTree, GitError> {
        let head = self.text(&["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
        let status = ["status", "--porcelain=v2", "-z", "--untracked-files=all", "--", ":/"];
        let status = self.run(&[&status[..], &[NO_SPOOL]].concat(), &[])?;
        let entries = || status.stdout.split(|byte| *byte == 0);
        let mut seen = format!("{head:?}\n");
        for entry in entries() {
            seen.push_str(&String::from_utf8_lossy(entry));
            seen.push('\n');
            seen.push_str(&self.touched(entry));
        }
        let conflicts = match markers {
            None => false,
            Some(since) => {
                self.has_markers(since)? || entries().any(|entry| self.file_has_markers(entry))
            }
        };
        let dirty = !status.stdout.is_empty();
        Ok(WorkTree { fingerprint: Some(digest(&seen)), head, dirty, conflicts, error: None })
    }

    /// When and how a changed file was last written: its name alone does not tell.
    fn touched(&self, entry: &[u8]) -> String {
        let Some(path) = self.path_of(entry) else { return String::new() };
        let Ok(metadata) = fs::symlink_metadata(path) else { return "gone\n".to_owned() };
        let at = metadata.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        format!("{} {:?}\n", metadata.len(), at.map(|at| at.as_nanos()))
    }

    /// The file that a line of the status is about.
    fn path_of(&self, entry: &[u8]) -> Option<PathBuf> {
        let fields = match entry.first()? {
            b'1' => 9,
            b'2' => 10,
            b'u' => 11,
            b'?' => 2,
            _ => return None,
        };
        let name = entry.splitn(fields, |byte| *byte == b' ').nth(fields - 1)?;
        Some(self.directory.join(file_name(name)))
    }

    /// Whether what was committed, staged or changed since a commit holds conflict markers.
    fn has_markers(&self, since: &Since) -> Result<bool, GitError> {
        let since = since.0.as_deref().unwrap_or(EMPTY_TREE);
        let check = ["diff", "--no-ext-diff", "--no-textconv", "--check"];
        for staged in [&["--cached"][..], &[]] {
            let checked = self.call(&[&check[..], staged, &[since, "--"]].concat(), &[])?;
            if String::from_utf8_lossy(&checked.stdout).contains("leftover conflict marker") {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether a file that git does not compare holds a conflict marker: one it does not know, or one
    /// that it still counts as unmerged.
    fn file_has_markers(&self, entry: &[u8]) -> bool {
        let uncompared = matches!(entry.first(), Some(b'u' | b'?'));
        let Some(path) = self.path_of(entry).filter(|_| uncompared) else { return false };
        let regular =
            fs::symlink_metadata(&path).is_ok_and(|it| it.is_file() && it.len() <= FILE_MAX);
        let Ok(bytes) = fs::read(path) else { return false };
        let marker = |line: &[u8]| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> ");
        regular && bytes.split(|byte| *byte == b'\n').any(marker)
    }

    /// Keeps uncommitted work on a branch of its own. Returns the branch, or nothing if there is
    /// nothing to keep.
    ///
    /// # Errors
    ///
    /// Fails if git refuses; nothing has changed then but unreachable objects.
    pub(crate) fn keep_work(&self, run: &str, message: &str) -> Result<Option<String>, GitError> {
        let scratch = tempfile::tempdir()?;
        let index = scratch.path().join("index");
        let with_index = [("GIT_INDEX_FILE", index.as_os_str())];
        let head = self.text(&["rev-parse", "--verify", "--quiet", "HEAD"]).ok();
        if head.is_some() {
            self.run(&["read-tree", "HEAD"], &with_index)?;
        }
        self.run(&["add", "--all", "--", ".", NO_SPOOL], &with_index)?;
        let tree = trimmed(&self.run(&["write-tree"], &with_index)?);
        if let Some(head) = &head
            && self.text(&["rev-parse", &format!("{head}^{{tree}}")])? == tree
        {
            return Ok(None);
        }
        let (branch, is_new) = self.branch_for(&format!("{BRANCH}{run}"), &tree);
        if !is_new {
            return Ok(Some(branch));
        }
        let mut args = vec!["commit-tree", &*tree, "-m", message];
        if let Some(head) = &head {
            args.extend(["-p", head]);
        }
        let commit = trimmed(&self.run(&args, &IDENTITY.map(as_words))?);
        let reference = format!("refs/heads/{branch}");
        // The old value is empty: a branch that exists is never moved.
        self.run(&["update-ref", "-m", message, &reference, &commit, ""], &[])?;
        Ok(Some(branch))
    }

    /// Returns the branch that holds this tree already, else a name that no branch has, and whether it
    /// is new. A run that was continued may end so again, with other work.
    fn branch_for(&self, name: &str, tree: &str) -> (String, bool) {
        let numbered = (2..=BRANCHES_MAX).map(|number| format!("{name}-{number}"));
        for name in std::iter::once(name.to_owned()).chain(numbered) {
            let held = format!("refs/heads/{name}^{{tree}}");
            match self.text(&["rev-parse", "--verify", "--quiet", &held]) {
                Err(_) => return (name, true),
                Ok(held) if held == tree => return (name, false),
                Ok(_) => {}
            }
        }
        (name.to_owned(), true)
    }

    /// Makes a work tree on a new branch from the current commit; on the branch that is there if
    /// one is.
    ///
    /// # Errors
    ///
    /// Fails if git refuses, for example without any commit.
    pub(crate) fn add_worktree(&self, tree: &Path, branch: &str) -> Result<(), GitError> {
        let path = tree.as_os_str();
        // A tree whose directory was deleted would be in the way.
        self.run(&["worktree", "prune"], &[])?;
        let reference = format!("refs/heads/{branch}");
        let known = self.text(&["rev-parse", "--verify", "--quiet", &reference]).is_ok();
        let add = ["worktree", "add", "--quiet"].map(OsStr::new);
        let [dashes, new, branch] = ["--", "-b", branch].map(OsStr::new);
        let rest: &[&OsStr] =
            if known { &[dashes, path, branch] } else { &[new, branch, dashes, path] };
        self.run(&[&add, rest].concat(), &[]).map(drop)
    }

    /// Removes a work tree and its branch, which is merged.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn remove_worktree(&self, tree: &Path, branch: &str) -> Result<(), GitError> {
        let args = ["worktree", "remove", "--force", "--"].map(OsStr::new);
        self.run(&[&args[..], &[tree.as_os_str()]].concat(), &[])?;
        self.run(&["branch", "--quiet", "-d", "--", branch], &[])?;
        Ok(())
    }

    /// Removes this work tree, once all that is in it is committed. Its branch stays.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn retire(&self, message: &str) -> Result<(), GitError> {
        self.commit_all(message)?;
        let args = ["worktree", "remove", "--"].map(OsStr::new);
        self.run(&[&args[..], &[self.directory.as_os_str()]].concat(), &[]).map(drop)
    }

    /// Commits whatever is not committed, if anything is.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn commit_all(&self, message: &str) -> Result<(), GitError> {
        self.run(&["add", "--all", "--", ".", NO_SPOOL], &[])?;
        if self.call(&["diff", "--cached", "--quiet"], &[])?.status.success() {
            return Ok(());
        }
        self.run(&["commit", "--quiet", "--no-verify", "-m", message], &IDENTITY.map(as_words))?;
        Ok(())
    }

    /// Whether a file is committed as it is now.
    pub(crate) fn is_committed(&self, file: &Path) -> bool {
        let is_so = |args: &[&str]| {
            let words = args.iter().map(OsStr::new).chain([file.as_os_str()]);
            let done = self.call(&words.collect::<Vec<_>>(), &[]);
            done.is_ok_and(|done| done.status.success())
        };
        is_so(&["ls-files", "--error-unmatch", "--"])
            && is_so(&["diff", "--no-ext-diff", "--no-textconv", "--quiet", "HEAD", "--"])
    }

    /// Commits one file, and nothing else.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn commit_file(&self, file: &Path, message: &str) -> Result<(), GitError> {
        let args = ["commit", "--quiet", "--no-verify", "--only", "-m", message, "--"];
        let args = args.map(OsStr::new);
        let identity = IDENTITY.map(as_words);
        self.run(&[&args[..], &[file.as_os_str()]].concat(), &identity).map(drop)
    }

    /// Merges a branch into the current one. On a conflict everything is as it was.
    ///
    /// # Errors
    ///
    /// Fails if git refuses for another reason, such as uncommitted changes in the same files.
    pub(crate) fn merge(&self, branch: &str, message: &str) -> Result<Merge, GitError> {
        let args = ["merge", "--quiet", "--no-ff", "--no-verify", "-m", message, "--", branch];
        self.merged(self.run(&args, &IDENTITY.map(as_words)))
    }

    /// Says how a merge went, and undoes one that stopped halfway.
    fn merged(&self, merged: Result<BoundedOutput, GitError>) -> Result<Merge, GitError> {
        let Err(refused) = merged else { return Ok(Merge::Done) };
        let conflicts = self.run(&["diff", "--name-only", "--diff-filter=U", "-z"], &[])?;
        let files: Vec<String> = conflicts
            .stdout
            .split(|byte| *byte == 0)
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8_lossy(name).into_owned())
            .collect();
        if files.is_empty() {
            return Err(refused);
        }
        self.run(&["merge", "--abort"], &[])?;
        Ok(Merge::Conflicts(files))
    }

    fn text(&self, args: &[&str]) -> Result<String, GitError> {
        Ok(trimmed(&self.run(args, &[])?))
    }

    /// Runs git. A refusal is an error.
    fn run<W: AsRef<OsStr>>(
        &self,
        args: &[W],
        env: &[(&str, &OsStr)],
    ) -> Result<BoundedOutput, GitError> {
        let output = self.call(args, env)?;
        if output.status.success() {
            return Ok(output);
        }
        let what = args.first().map(|word| word.as_ref().to_string_lossy().into_owned());
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(GitError::Refused { what: what.unwrap_or_default(), said })
    }

    fn call<W: AsRef<OsStr>>(
        &self,
        args: &[W],
        env: &[(&str, &OsStr)],
    ) -> Result<BoundedOutput, GitError> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                command.env_remove(name);
            }
        }
        command.args(SAFE.iter().flat_map(|setting| ["-c", setting]));
        command.args(args).current_dir(&self.directory);
        command.env("GIT_OPTIONAL_LOCKS", "0").env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        command.envs(env.iter().copied());
        self.owner.iter().for_each(|owner| owner.put_on(&mut command));
        Ok(run_cancellable(command, DEADLINE, OUTPUT_MAX, &self.cancellation)?)
    }
}

fn as_words<'a>((name, value): (&'a str, &'a str)) -> (&'a str, &'a OsStr) {
    (name, OsStr::new(value))
}

/// The name of a file as git prints it: bytes on Unix, UTF-8 elsewhere.
#[cfg(unix)]
fn file_name(bytes: &[u8]) -> OsString {
    std::os::unix::ffi::OsStringExt::from_vec(bytes.to_vec())
}

#[cfg(not(unix))]
fn file_name(bytes: &[u8]) -> OsString {
    String::from_utf8_lossy(bytes).into_owned().into()
}

fn trimmed(output: &BoundedOutput) -> String {
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[cfg(test)]
mod tests {
    //! Against the real git.

    use super::*;

    fn repository() -> (tempfile::TempDir, Git) {
        let directory = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| {
            let mut command = Command::new("git");
            command.args([
                "-c",
                "user.name=t",
                "-c",
                "user.email=t@t",
                "-c",
                "init.defaultBranch=main",
            ]);
            assert!(
                command.args(args).current_dir(directory.path()).output().unwrap().status.success()
            );
        };
        git(&["init", "-q", "."]);
        fs::write(directory.path().join("a"), "one\n").unwrap();
        git(&["add", "a"]);
        git(&["commit", "-qm", "first"]);
        let git = Git::around(directory.path()).unwrap();
        (directory, git)
    }

    #[test]
    fn every_change_changes_the_fingerprint() {
        let (directory, git) = repository();
        let clean = git.look(None).unwrap();
        assert!(!clean.dirty && clean.head.is_some());
        assert_eq!(git.look(None).unwrap(), clean);
        fs::write(directory.path().join("a"), "two\n").unwrap();
        let changed = git.look(None).unwrap();
        assert!(changed.dirty && changed.fingerprint != clean.fingerprint);
        fs::write(directory.path().join("a"), "three\n").unwrap();
        let again = git.look(None).unwrap();
        assert_ne!(again.fingerprint, changed.fingerprint, "also within a file that was changed");
        fs::write(directory.path().join("new"), "x").unwrap();
        assert_ne!(git.look(None).unwrap().fingerprint, again.fingerprint);
    }

    #[test]
    fn conflict_markers_are_seen() {
        let (directory, git) = repository();
        assert!(!git.look(Some(&Since(None))).unwrap().conflicts);
        fs::write(directory.path().join("a"), "<<<<<<< ours\none\n=======\ntwo\n>>>>>>> theirs\n")
            .unwrap();
        assert!(git.look(Some(&Since(None))).unwrap().conflicts);
    }

    #[test]
    fn partial_work_is_kept_aside() {
        let (directory, git) = repository();
        assert_eq!(git.keep_work("r1", "partial").unwrap(), None);
        fs::write(directory.path().join("a"), "two\n").unwrap();
        fs::write(directory.path().join("new"), "x").unwrap();
        let before = git.look(None).unwrap();
        let index = fs::read(directory.path().join(".git/index")).unwrap();
        let branch = git.keep_work("r1", "partial").unwrap().unwrap();
        assert_eq!(branch, "aldis/partial-r1");
        assert_eq!(git.look(None).unwrap(), before, "the work tree and HEAD stay");
        assert_eq!(fs::read(directory.path().join(".git/index")).unwrap(), index);
        assert_eq!(git.text(&["show", "aldis/partial-r1:new"]).unwrap(), "x");
        assert_eq!(git.text(&["rev-parse", "aldis/partial-r1^"]).unwrap(), before.head.unwrap());
        assert_eq!(git.keep_work("r1", "partial").unwrap().unwrap(), branch, "it is kept once");
        fs::write(directory.path().join("new"), "y").unwrap();
        let again = git.keep_work("r1", "partial").unwrap().unwrap();
        assert_eq!(again, "aldis/partial-r1-2", "a branch is never moved");
    }

    #[test]
    fn work_trees_are_merged_or_left_as_they_were() {
        let (directory, git) = repository();
        let trees = tempfile::tempdir().unwrap();
        let tree = |name: &str| trees.path().join(name);
        for name in ["x", "y"] {
            git.add_worktree(&tree(name), &format!("aldis/r/{name}")).unwrap();
            fs::write(tree(name).join("a"), format!("{name}\n")).unwrap();
            git.at(&tree(name)).commit_all("work").unwrap();
            git.at(&tree(name)).commit_all("nothing").unwrap();
        }
        assert_eq!(git.merge("aldis/r/x", "merge x").unwrap(), Merge::Done);
        git.remove_worktree(&tree("x"), "aldis/r/x").unwrap();
        assert_eq!(fs::read_to_string(directory.path().join("a")).unwrap(), "x\n");
        let conflicts = Merge::Conflicts(vec!["a".to_owned()]);
        assert_eq!(git.merge("aldis/r/y", "merge y").unwrap(), conflicts);
        assert!(!git.look(None).unwrap().dirty, "everything is as it was");
        // A tree that was deleted by hand is made again on its branch.
        fs::remove_dir_all(tree("y")).unwrap();
        git.add_worktree(&tree("y"), "aldis/r/y").unwrap();
        assert_eq!(fs::read_to_string(tree("y").join("a")).unwrap(), "y\n");
    }

    #[test]
    fn a_repository_runs_nothing() {
        let (directory, git) = repository();
        let canary = directory.path().join("pwned");
        let hook = directory.path().join(".git/hooks/reference-transaction");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\ntouch '{}'\n", canary.display())).unwrap();
        std::os::unix::fs::PermissionsExt::set_mode(
            &mut fs::metadata(&hook).unwrap().permissions(),
            0o755,
        );
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let config = directory.path().join(".git/config");
        let text = fs::read_to_string(&config).unwrap();
        let monitor = format!("[core]\n\tfsmonitor = \"touch {}; false\"\n", canary.display());
        fs::write(&config, text + &monitor).unwrap();
        fs::write(directory.path().join("a"), "two\n").unwrap();
        git.look(None).unwrap();
        git.keep_work("r2", "partial").unwrap();
        assert!(!canary.exists());
    }

    #[test]
    fn there_may_be_no_repository() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Git::around(directory.path()).is_none());
    }
}
