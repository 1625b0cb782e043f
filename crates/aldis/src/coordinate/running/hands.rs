//! The processes of a run: the agent, and the check of its claim.

use std::ffi::OsString;
use std::time::Duration;

use aldis_machine::run::{Event, Exit};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_transcript::facts::Facts;
use aldis_transcript::{Format, Input};
use tempfile::NamedTempFile;

use super::Plan;
use crate::agents::ear::{Ear, Said};
use crate::agents::logbook::Logbook;
use crate::agents::recipe::{self, Started};
use crate::error::CommandError;
use aldis_process::{Agent, Launch, Mark, Output};

/// How much of a check's output is kept.
const OUTPUT_MAX: usize = 64 * 1024;

/// The shell that runs what users write. Its path is fixed: `PATH` may be anybody's.
const SHELL: &str = "/bin/sh";

/// A process and what it is for.
pub(super) struct Job<'r> {
    pub(super) agent: Agent,
    role: Role<'r>,
    pub(super) exit: Option<Exit>,
    /// Whether all output has come.
    pub(super) closed: bool,
    /// Holds the prompt for as long as the agent may read it.
    _prompt: Option<NamedTempFile>,
}

enum Role<'r> {
    /// Its words, and what its host reports beside them.
    Agent(Box<Ear<'r>>, Box<Facts>),
    /// The end of what a check printed.
    Check(Vec<u8>),
}

impl<'r> Job<'r> {
    /// Starts the agent with a prompt.
    pub(super) fn agent(
        plan: &Plan,
        prompt: &str,
        owner: Mark,
        ear: Ear<'r>,
    ) -> Result<Self, CommandError> {
        let Started { agent, prompt } = plan.recipe.start(prompt, &plan.directory, &[], owner)?;
        let errors = Facts::new(Input::Format(Format::Text), plan.zone.clone());
        Ok(Self::new(agent, Role::Agent(Box::new(ear), Box::new(errors)), prompt))
    }

    /// Starts the check.
    pub(super) fn check(plan: &Plan, verify: &str, owner: Mark) -> Result<Self, CommandError> {
        let mut launch = Launch::new(SHELL);
        launch.args = ["-c", verify].map(OsString::from).to_vec();
        launch.cwd.clone_from(&plan.directory);
        launch.owner = Some(owner);
        Ok(Self::new(recipe::start(&launch)?, Role::Check(Vec::new()), None))
    }

    fn new(agent: Agent, role: Role<'r>, prompt: Option<NamedTempFile>) -> Self {
        Self { agent, role, exit: None, closed: false, _prompt: prompt }
    }

    /// Takes what it wrote to standard output.
    pub(super) fn hear(&mut self, bytes: &[u8], now: Timestamp, said: &mut Vec<Said>) {
        match &mut self.role {
            Role::Agent(ear, _) => ear.push(bytes, now, &mut |heard| said.push(heard)),
            Role::Check(output) => keep_end(output, bytes),
        }
    }

    /// Takes what it wrote to standard error: a check says there what is wrong, and an agent's host at
    /// the very end why it gave up. Nothing there is a signal.
    pub(super) fn overhear(&mut self, bytes: &[u8], now: Timestamp) {
        match &mut self.role {
            Role::Agent(_, errors) => errors.push(bytes, now, &mut drop),
            Role::Check(output) => keep_end(output, bytes),
        }
    }

    /// Ends everything that belongs to it. Returns what it still said, and how it ended.
    pub(super) fn end(
        self,
        grace: Duration,
        now: Timestamp,
        log: &mut Logbook,
    ) -> (Vec<Said>, Event) {
        let Self { agent, mut role, exit, .. } = self;
        let mut said = Vec::new();
        let ended = agent.end_with(grace, |output| {
            if let Output::Stdout(bytes) | Output::Stderr(bytes) = &output {
                log.write(bytes);
            }
            match (&mut role, output) {
                (Role::Agent(ear, _), Output::Stdout(bytes)) => {
                    ear.push(&bytes, now, &mut |heard| said.push(heard));
                }
                (Role::Agent(_, errors), Output::Stderr(bytes)) => {
                    errors.push(&bytes, now, &mut drop);
                }
                (Role::Check(kept), Output::Stdout(bytes) | Output::Stderr(bytes)) => {
                    keep_end(kept, &bytes);
                }
                _ => {}
            }
        });
        log.flush();
        let exit =
            exit.or_else(|| ended.exit.map(|exit| Exit { code: exit.code, signal: exit.signal }));
        let exit = exit.unwrap_or(Exit { code: None, signal: None });
        match role {
            Role::Agent(ear, errors) => {
                ear.finish(now, &mut |heard| said.push(heard));
                // A host that ended well has overcome what it complained of.
                if !exit.is_clean() {
                    errors.finish(now, &mut |fact| said.push(Said::Fact(fact)));
                }
                (said, Event::Exited(exit.into()))
            }
            Role::Check(output) => {
                let output = redact(&String::from_utf8_lossy(&output)).into_owned();
                (said, Event::Checked { passed: exit.is_clean(), output })
            }
        }
    }
}

fn keep_end(kept: &mut Vec<u8>, bytes: &[u8]) {
    kept.extend_from_slice(bytes);
    let surplus = kept.len().saturating_sub(OUTPUT_MAX);
    if surplus > OUTPUT_MAX {
        kept.drain(..surplus);
    }
}
