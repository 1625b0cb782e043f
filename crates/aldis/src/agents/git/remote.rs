//! What is fetched from other repositories, and what is pushed to them.
//!
//! The address comes from whoever began the delivery, never from an agent. Only file systems, SSH and
//! HTTPS are spoken to: a helper program (`ext::`) is none.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aldis_process::{BoundedOutput, Cancellation, run_cancellable};

use super::{Git, GitError, IDENTITY, Merge, OUTPUT_MAX, SAFE, as_words, trimmed};

/// How long one call may take: a first clone of a large repository takes minutes.
const DEADLINE: Duration = Duration::from_secs(10 * 60);
/// What git may speak.
const PROTOCOLS: [&str; 3] =
    ["protocol.file.allow=always", "protocol.ssh.allow=always", "protocol.https.allow=always"];
/// How git gets at keys and passwords: from whoever started us, so they stay.
const CREDENTIALS: [&str; 4] = ["GIT_ASKPASS", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_CONFIG_GLOBAL"];

/// How a push went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Push {
    /// The branch is there now.
    Done,
    /// The branch there is another one than was expected.
    Stale,
}

impl Git {
    /// Makes an empty repository in a directory, unless there is one.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn init(directory: &Path, cancellation: Cancellation) -> Result<Self, GitError> {
        fs::create_dir_all(directory)?;
        let git = Self { directory: directory.to_owned(), cancellation, owner: None };
        if !directory.join(".git").exists() {
            git.run(&["init", "--quiet"], &[])?;
        }
        Ok(git)
    }

    /// Returns the address of a remote of this repository.
    pub(crate) fn remote_url(&self, name: &str) -> Option<String> {
        self.text(&["remote", "get-url", "--", name]).ok()
    }

    /// Returns the current commit.
    pub(crate) fn head(&self) -> Option<String> {
        self.text(&["rev-parse", "--verify", "--quiet", "HEAD"]).ok()
    }

    /// Returns the commit of a branch of another repository, if it has that branch.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be reached.
    pub(crate) fn remote_tip(&self, url: &str, branch: &str) -> Result<Option<String>, GitError> {
        let reference = format!("refs/heads/{branch}");
        let found = self.speak(&["ls-remote", "--quiet", "--", url, &reference])?;
        let text = trimmed(&found);
        let line = text.lines().find(|line| line.ends_with(&reference));
        Ok(line.and_then(|line| line.split_whitespace().next()).map(str::to_owned))
    }

    /// Fetches a branch of another repository. Returns its commit.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be reached, or has no such branch.
    pub(crate) fn fetch(&self, url: &str, branch: &str) -> Result<String, GitError> {
        let kept = format!("refs/aldis/fetched/{branch}");
        let wanted = format!("+refs/heads/{branch}:{kept}");
        self.speak(&[
            "fetch",
            "--quiet",
            "--no-tags",
            "--no-write-fetch-head",
            "--",
            url,
            &wanted,
        ])?;
        self.text(&["rev-parse", "--verify", &kept])
    }

    /// Pushes a commit to a branch of another repository, if that still is at `expected`; nothing is for
    /// a branch that must not be there yet.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be reached or refuses.
    pub(crate) fn push(
        &self,
        url: &str,
        (commit, branch): (&str, &str),
        expected: Option<&str>,
    ) -> Result<Push, GitError> {
        let expected = expected.unwrap_or_default();
        let lease = format!("--force-with-lease=refs/heads/{branch}:{expected}");
        let what = format!("{commit}:refs/heads/{branch}");
        match self.speak(&["push", "--quiet", "--no-verify", &lease, "--", url, &what]) {
            Ok(_) => Ok(Push::Done),
            Err(GitError::Refused { said, .. })
                if said.contains("stale info") || said.contains("cannot lock ref") =>
            {
                Ok(Push::Stale)
            }
            Err(error) => Err(error),
        }
    }

    /// Removes a branch of another repository, if it is there.
    ///
    /// # Errors
    ///
    /// Fails if the repository cannot be reached or refuses.
    pub(crate) fn remove_remote_branch(&self, url: &str, branch: &str) -> Result<(), GitError> {
        if self.remote_tip(url, branch)?.is_none() {
            return Ok(());
        }
        let what = format!(":refs/heads/{branch}");
        self.speak(&["push", "--quiet", "--no-verify", "--", url, &what]).map(drop)
    }

    /// Brings this work tree to a commit, on a branch of this name, whatever was in it. What git ignores
    /// stays: dependencies that were installed need not be installed again.
    ///
    /// # Errors
    ///
    /// Fails if git refuses.
    pub(crate) fn reset_to(&self, commit: &str, branch: &str) -> Result<(), GitError> {
        self.run(&["checkout", "--quiet", "--force", "-B", branch, commit, "--"], &[])?;
        self.run(&["clean", "-d", "--force", "--quiet"], &[]).map(drop)
    }

    /// Merges a commit into the current branch. On a conflict everything is as it was.
    ///
    /// # Errors
    ///
    /// As [`merge`](Self::merge).
    pub(crate) fn catch_up(&self, commit: &str) -> Result<Merge, GitError> {
        let args = ["merge", "--quiet", "--no-verify", "--no-edit", "--", commit];
        self.merged(self.run(&args, &IDENTITY.map(as_words)))
    }

    /// Runs git where it speaks to another repository. A refusal is an error.
    fn speak(&self, args: &[&str]) -> Result<BoundedOutput, GitError> {
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            let stays = CREDENTIALS.iter().any(|kept| name == *kept);
            if name.as_encoded_bytes().starts_with(b"GIT_") && !stays {
                command.env_remove(name);
            }
        }
        command.args(SAFE.iter().chain(&PROTOCOLS).flat_map(|setting| ["-c", setting]));
        command.args(args.iter().map(OsStr::new)).current_dir(&self.directory);
        command.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
        let output = run_cancellable(command, DEADLINE, OUTPUT_MAX, &self.cancellation)?;
        if output.status.success() {
            return Ok(output);
        }
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let what = args.first().copied().unwrap_or_default().to_owned();
        Err(GitError::Refused { what, said })
    }
}

#[cfg(test)]
mod tests {
    //! Two clones of one repository.

    use super::*;

    fn clone(remote: &Path) -> (tempfile::TempDir, Git) {
        let directory = tempfile::tempdir().unwrap();
        let git = Git::init(directory.path(), Cancellation::default()).unwrap();
        let url = remote.to_str().unwrap();
        if let Some(tip) = git.remote_tip(url, "main").unwrap() {
            assert_eq!(git.fetch(url, "main").unwrap(), tip);
            git.reset_to(&tip, "main").unwrap();
        }
        (directory, git)
    }

    #[test]
    fn a_branch_is_pushed_only_over_the_one_that_was_seen() {
        let bare = tempfile::tempdir().unwrap();
        let made = Command::new("git").args(["init", "-q", "--bare"]).arg(bare.path()).status();
        assert!(made.unwrap().success());
        let url = bare.path().to_str().unwrap();
        let (first, git) = clone(bare.path());
        fs::write(first.path().join("a"), "one\n").unwrap();
        git.commit_all("one").unwrap();
        let one = git.head().unwrap();
        assert_eq!(git.push(url, (&one, "main"), None).unwrap(), Push::Done);
        assert_eq!(git.push(url, (&one, "main"), Some(&one)).unwrap(), Push::Done);

        let (second, other) = clone(bare.path());
        fs::write(second.path().join("b"), "two\n").unwrap();
        other.commit_all("two").unwrap();
        let two = other.head().unwrap();
        assert_eq!(other.push(url, (&two, "main"), Some(&one)).unwrap(), Push::Done);
        fs::write(first.path().join("a"), "late\n").unwrap();
        git.commit_all("late").unwrap();
        let late = git.head().unwrap();
        assert_eq!(git.push(url, (&late, "main"), Some(&one)).unwrap(), Push::Stale);
        assert_eq!(git.push(url, (&late, "main"), None).unwrap(), Push::Stale);
        assert_eq!(git.remote_tip(url, "main").unwrap(), Some(two.clone()));

        git.fetch(url, "main").unwrap();
        assert_eq!(git.catch_up(&two).unwrap(), Merge::Done);
        git.remove_remote_branch(url, "main").unwrap();
        git.remove_remote_branch(url, "main").unwrap();
        assert_eq!(git.remote_tip(url, "main").unwrap(), None);
    }

    #[test]
    fn a_helper_program_is_no_repository() {
        let directory = tempfile::tempdir().unwrap();
        let git = Git::init(directory.path(), Cancellation::default()).unwrap();
        let canary = directory.path().join("pwned");
        let url = format!("ext::touch {}", canary.display());
        assert!(git.remote_tip(&url, "main").is_err());
        assert!(git.remote_tip("--upload-pack=touch pwned", "main").is_err());
        assert!(!canary.exists());
    }
}
