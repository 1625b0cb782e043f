//! The environment variables that hosts set or that change what they do.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::spec::HostSpec;
use super::{ALL, Host};
use crate::settings::system::System;

/// Variables, looked up once, so that nothing else asks the process for them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Env {
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// Where temporary files are.
    pub temp: Option<PathBuf>,
    /// The variables of all hosts that are set.
    variables: BTreeMap<&'static str, OsString>,
}

impl Env {
    /// Looks up the variables of this process.
    pub fn of_process() -> Self {
        let home = env::home_dir().filter(|home| !home.as_os_str().is_empty());
        let found = Self::from_lookup(|name| env::var_os(name));
        Self { home: found.home.or(home), temp: Some(env::temp_dir()), ..found }
    }

    /// Looks up the variables wherever `get` finds them. Empty ones count as not set.
    pub fn from_lookup(get: impl Fn(&str) -> Option<OsString>) -> Self {
        Self::on(System::CURRENT, get)
    }

    /// The same on any system.
    pub(crate) fn on(system: System, get: impl Fn(&str) -> Option<OsString>) -> Self {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let names = Host::known().flat_map(|host| variables(host.spec()));
        Self {
            home: system.home(&get),
            temp: system.temp(&get),
            variables: names.filter_map(|name| Some((name, set(name)?))).collect(),
        }
    }

    /// Returns a variable that some host's file names, as a path.
    pub(crate) fn path(&self, name: &str) -> Option<PathBuf> {
        self.variables.get(name).map(PathBuf::from)
    }

    /// Returns a variable that some host's file names, as text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.variables.get(name)?.to_str()
    }

    /// Returns the variables that are text, to be looked up elsewhere.
    pub(crate) fn texts(&self) -> BTreeMap<String, String> {
        let text = |(name, value): (&&str, &OsString)| {
            Some(((*name).to_owned(), value.to_str()?.to_owned()))
        };
        self.variables.iter().filter_map(text).collect()
    }

    /// Returns the session whose agent runs this very process.
    pub(crate) fn session(&self) -> Option<&str> {
        let mut names = ALL.iter().flat_map(|host| host.spec().session_variables);
        names.find_map(|name| self.text(name))
    }

    /// Returns the directories in which a host's transcripts may lie: the user's home, the host's
    /// own directory, the project and the place for temporary files.
    pub(crate) fn transcript_roots(&self, host: Host, project: Option<&Path>) -> Vec<PathBuf> {
        let HostSpec { transcripts, settings, .. } = host.spec();
        // Named apart from the home it lies in: it may be a link to somewhere else.
        let folder = self.home.as_ref().zip(transcripts.folder);
        let roots = [
            self.home.clone(),
            folder.map(|(home, name)| home.join(name)),
            settings.variable.and_then(|(name, below)| Some(self.path(name)?.join(below))),
            project.map(Path::to_owned),
            self.temp.clone(),
        ];
        roots.into_iter().flatten().collect()
    }

    /// Replaces a leading `~` by the home directory.
    pub(super) fn expand(&self, path: &str) -> PathBuf {
        let rest = path
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with(std::path::is_separator));
        match (rest, &self.home) {
            (Some(rest), Some(home)) => home.join(rest.trim_start_matches(std::path::is_separator)),
            _ => PathBuf::from(path),
        }
    }
}

/// The variables of a host.
fn variables(spec: &'static HostSpec) -> impl Iterator<Item = &'static str> {
    let lists = [spec.session_variables, spec.project_variables];
    let single = [
        spec.block_cap.variable,
        spec.settings.variable.map(|(name, _)| name),
        spec.attended.map(|(name, _)| name),
    ];
    lists.into_iter().flatten().copied().chain(single.into_iter().flatten())
}
