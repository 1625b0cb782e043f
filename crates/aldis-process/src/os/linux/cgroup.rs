//! A control group (cgroup v2) for each agent, where the system lets us create one.
//!
//! Children are born into the group of their parent, and neither `setsid` nor a double fork leaves
//! it, so one write kills or freezes the whole tree at once. Many systems do not let an unprivileged
//! user create groups; everything here is therefore optional, and walking the process tree does the
//! same where there is none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process;
use std::thread;
use std::time::Duration;

use super::tree::Process;
use crate::Mark;

/// The prefix of the names of our groups.
const PREFIX: &str = "aldis-";
/// How deep nested groups are searched for.
const DEPTH_MAX: usize = 16;
/// How often removal is retried: a group stays busy until its last process is reaped.
const REMOVE_TRIES: u32 = 50;
const REMOVE_PAUSE: Duration = Duration::from_millis(10);

/// A control group.
#[derive(Clone, Debug)]
pub(super) struct Cgroup {
    path: PathBuf,
}

impl Cgroup {
    /// Creates a group below our own, if the system allows it.
    pub(super) fn create(mark: &Mark) -> Option<Self> {
        let parent = own()?;
        remove_forgotten(&parent);
        let pid = process::id();
        let start = Process::read(i32::try_from(pid).ok()?)?.start;
        let path = parent.join(format!("{PREFIX}{pid}-{start}-{mark}"));
        fs::create_dir(&path).ok()?;
        // A group is of no use if we may not move processes into it.
        let writable = fs::OpenOptions::new().write(true).open(path.join("cgroup.procs")).is_ok();
        let group = Self { path };
        if writable {
            return Some(group);
        }
        group.remove();
        None
    }

    /// Returns the group at a path that [`Cgroup::create`] chose earlier.
    pub(super) fn at(path: PathBuf) -> Self {
        Self { path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Moves this process into the group.
    pub(super) fn enter(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.procs"), "0")
    }

    /// Freezes every process of the group, or thaws them.
    pub(super) fn freeze(&self, frozen: bool) -> io::Result<()> {
        fs::write(self.path.join("cgroup.freeze"), if frozen { "1" } else { "0" })
    }

    /// Kills every process of the group. Fails before Linux 5.14.
    pub(super) fn kill(&self) -> io::Result<()> {
        fs::write(self.path.join("cgroup.kill"), "1")
    }

    /// Returns the processes of the group and of nested groups.
    pub(super) fn processes(&self) -> Vec<Process> {
        let mut found = Vec::new();
        for path in groups(&self.path, DEPTH_MAX) {
            let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
            found.extend(text.lines().filter_map(|line| Process::read(line.parse().ok()?)));
        }
        found
    }

    /// Removes the group once it is empty. Returns whether it is gone.
    pub(super) fn remove(&self) -> bool {
        for _ in 0..REMOVE_TRIES {
            // Nested groups must go first.
            for path in groups(&self.path, DEPTH_MAX).iter().rev() {
                let _removed = fs::remove_dir(path);
            }
            if !self.path.exists() {
                return true;
            }
            thread::sleep(REMOVE_PAUSE);
        }
        false
    }
}

/// Returns a group and the groups nested in it, outer ones first.
fn groups(path: &Path, depth: usize) -> Vec<PathBuf> {
    let mut found = vec![path.to_owned()];
    if depth > 0 {
        let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
        found.extend(folders.flat_map(|entry| groups(&entry.path(), depth - 1)));
    }
    found
}

/// Removes empty groups of supervisors that were killed before they could do it.
fn remove_forgotten(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().filter_map(Result::ok) {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(rest) = name.strip_prefix(PREFIX) else { continue };
        let mut parts = rest.split('-');
        let pid = parts.next().and_then(|part| part.parse().ok());
        let start = parts.next().and_then(|part| part.parse().ok());
        if let (Some(pid), Some(start)) = (pid, start)
            && Process::same(pid, start).is_none()
        {
            // Fails if the group is not empty; whoever takes the run over ends those processes.
            let _removed = fs::remove_dir(entry.path());
        }
    }
}

/// Returns the directory of our own group.
pub(super) fn own() -> Option<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    directory(&groups, &mounts).filter(|path| path.join("cgroup.procs").exists())
}

/// Finds our group from the contents of `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn directory(groups: &str, mounts: &str) -> Option<PathBuf> {
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    for line in mounts.lines() {
        let Some((place, kind)) = line.split_once(" - ") else { continue };
        if kind.split(' ').next() != Some("cgroup2") {
            continue;
        }
        let mut fields = place.split(' ').skip(3);
        let (root, mount) = (fields.next()?, fields.next()?);
        // A group outside of the mounted part of the hierarchy cannot be reached.
        let Ok(rest) = Path::new(group).strip_prefix(root) else { continue };
        if !rest.components().any(|part| part.as_os_str() == "..") {
            return Some(Path::new(mount).join(rest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_its_own_group_or_none() {
        let mounts = "24 1 0:5 / /proc rw - proc proc rw\n\
                      31 24 0:27 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n";
        let inner = "31 24 0:27 /box /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let table = [
            ("0::/user.slice/a.scope\n", mounts, Some("/sys/fs/cgroup/user.slice/a.scope")),
            ("4:memory:/x\n0::/\n", mounts, Some("/sys/fs/cgroup")),
            ("0::/box/a\n", inner, Some("/sys/fs/cgroup/a")),
            ("0::/other\n", inner, None),
            ("0::/../other\n", mounts, None),
            ("4:memory:/x\n", mounts, None),
            ("0::/a\n", "", None),
        ];
        for (groups, mounts, expected) in table {
            assert_eq!(directory(groups, mounts).as_deref(), expected.map(Path::new), "{groups}");
        }
    }
}
