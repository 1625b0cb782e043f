//! The world of one coordinator or one slot of a worker, over the common clock.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use aldis::coordinate::simulated::{
    Control, Happening, JobId, JobLaunch, Leftover, OutputStream, RepositoryAnswer,
    RepositoryRequest, StartFailure, TerminalNotice, Ticket, World,
};
use aldis_engine::Engine;
use aldis_machine::delivery::State;
use aldis_machine::run::{Exit, WorkTree};
use aldis_signal::time::Timestamp;

use super::hub::{ActorId, Hub, Mail, Woken};

pub(super) struct FleetWorld {
    hub: Hub,
    actor: ActorId,
    /// As other processes see the store.
    engine: Engine,
    due: BTreeMap<(Timestamp, u64), Happening>,
    scheduled: u64,
    /// What came while nobody read.
    unread: Woken,
    /// How often this process was asked to end.
    interrupts: u32,
}

impl FleetWorld {
    pub(super) fn new(hub: &Hub, actor: ActorId, engine: Engine) -> Self {
        let (hub, due, unread) = (hub.clone(), BTreeMap::new(), Woken::default());
        Self { hub, actor, engine, due, scheduled: 0, unread, interrupts: 0 }
    }

    /// Passes the baton on until then. Whatever comes is kept until somebody reads it.
    fn park(&mut self, until: Timestamp) {
        let woken = self.hub.park(self.actor, until);
        let is_interrupt =
            |mail: &&Mail| matches!(mail, Mail::Happening(Happening::Interrupted(_)));
        let interrupts = woken.mail.iter().filter(is_interrupt).count();
        self.interrupts += u32::try_from(interrupts).unwrap_or(u32::MAX);
        self.unread.mail.extend(woken.mail);
        self.unread.changed |= woken.changed;
    }

    fn schedule(&mut self, after: usize, what: Happening) {
        self.scheduled += 1;
        let after = Duration::from_millis(u64::try_from(after).unwrap_or_default());
        self.due.insert((self.hub.now().after(after), self.scheduled), what);
    }

    fn below(&self, most: usize) -> usize {
        self.hub.shared().lock().rng.below(most)
    }

    /// Whether something goes wrong now, so many times in a hundred.
    fn unlucky(&self, percent: usize) -> bool {
        let mut fate = self.hub.shared().lock();
        fate.faults && fate.rng.chance(percent)
    }

    fn event(&self, what: &str) {
        self.hub.shared().lock().event(format_args!("{}: {what}", self.actor));
    }

    /// Nothing runs before its claim is committed.
    fn check_claimed(&self, launch: &JobLaunch) {
        let Some(worker) = &launch.worker else {
            self.hub.shared().stop("workers_run_agents", format!("{:?}", launch.run));
        };
        let number = launch.variables.iter().find(|(name, _)| *name == "ALDIS_AGENT");
        let number = number.and_then(|(_, number)| number.parse().ok());
        let run = self.engine.open::<State>(&launch.run);
        let claimed = run.ok().zip(number).is_some_and(|(run, number)| {
            let agent = run.state().agent(number);
            let claim = agent.filter(|agent| !agent.queued).and_then(|agent| agent.worker.clone());
            claim.is_some_and(|claim| claim.name == *worker)
        });
        if !claimed {
            let detail = format!("agent {number:?} of {worker}");
            self.hub.shared().stop("nothing_runs_before_its_claim_is_committed", detail);
        }
    }
}

impl World for FleetWorld {
    fn now(&self) -> Timestamp {
        self.hub.now()
    }

    fn wait(&mut self, until: Timestamp) -> Vec<Happening> {
        let first = self.due.keys().next().map(|(at, _)| *at);
        let is_unread = self.unread.changed || !self.unread.mail.is_empty();
        let now = is_unread.then(|| self.hub.now());
        self.park(first.into_iter().chain(now).fold(until, Timestamp::min));
        let woken = std::mem::take(&mut self.unread);
        let mut happened = Vec::new();
        for mail in woken.mail {
            if let Mail::Happening(happening) = mail {
                happened.push(happening);
            }
        }
        if woken.changed {
            happened.push(Happening::StoreChanged);
        }
        let now = self.hub.now();
        while let Some(entry) = self.due.first_entry().filter(|entry| entry.key().0 <= now) {
            let happening = entry.remove();
            self.event("something happens");
            happened.push(happening);
        }
        happened
    }

    fn pause(&mut self, until: Timestamp) -> u32 {
        while self.hub.now() < until {
            self.park(until);
        }
        self.interrupts
    }

    fn start(&mut self, job: JobId, launch: &JobLaunch) -> Result<String, StartFailure> {
        self.hub.shared().call();
        self.check_claimed(launch);
        self.event("an agent starts");
        if self.unlucky(3) {
            return Err(StartFailure { what: "there is no such program".to_owned() });
        }
        let variable = |wanted: &str| {
            let found = launch.variables.iter().find(|(name, _)| *name == wanted);
            found.map(|(_, value)| value.clone()).unwrap_or_default()
        };
        let (role, task) = (variable("ALDIS_ROLE"), variable("ALDIS_TASK"));
        let rejects = self.unlucky(10);
        let text = match &*role {
            "developer" => format!("Done.\n\nREADY_FOR_REVIEW: {task}\nSummary: done\n"),
            "critic" if rejects => format!("REVIEW_FAILED: {task}\n- src/a.rs: wrong\n"),
            "critic" => format!("REVIEW_PASSED: {task}\n"),
            "auditor" => format!("AUDIT_PASSED: {task}\n"),
            "remediation" => "REMEDIATION_COMPLETE\n".to_owned(),
            "health_auditor" => "HEALTH_AUDIT: HEALTHY\n".to_owned(),
            _ => "Nothing to say.\n".to_owned(),
        };
        let crashes = self.unlucky(5);
        let works = 500 + self.below(60_000);
        if !crashes {
            let (stream, bytes) = (OutputStream::Stdout, text.into_bytes());
            self.schedule(works, Happening::Output { job, stream, bytes });
        }
        let exit = Exit { code: Some(i32::from(crashes)), signal: None };
        self.schedule(works + 10, Happening::Over { job, exit });
        Ok(format!("process {job} of {}", self.actor))
    }

    fn control(&mut self, job: JobId, control: Control) {
        self.hub.shared().call();
        if matches!(control, Control::End(_)) {
            let own = |happening: &Happening| match happening {
                Happening::Output { job: of, .. } | Happening::Over { job: of, .. } => *of == job,
                _ => false,
            };
            let before = self.due.len();
            self.due.retain(|_, happening| !own(happening));
            if self.due.len() < before {
                let after = self.below(5_000);
                let exit = Exit { code: None, signal: Some(15) };
                self.schedule(after, Happening::Over { job, exit });
            }
        }
    }

    fn ask(&mut self, ticket: Ticket, request: RepositoryRequest) {
        self.hub.shared().call();
        let unlucky = self.unlucky(5);
        let refused = || "git: refused".to_owned();
        let answer = match request {
            RepositoryRequest::AddWorktree { task } => RepositoryAnswer::Worktree(match unlucky {
                true => Err(refused()),
                false => Ok(PathBuf::from(format!("/simulated/worktrees/{task}"))),
            }),
            RepositoryRequest::Publish { .. } => RepositoryAnswer::Published(match unlucky {
                true => Err(refused()),
                false => Ok("c0ffee".to_owned()),
            }),
            RepositoryRequest::Merge { .. } => {
                RepositoryAnswer::Merged(if unlucky { Err(refused()) } else { Ok(()) })
            }
            RepositoryRequest::Look { .. } => RepositoryAnswer::Looked(WorkTree {
                fingerprint: Some(format!("f{}", self.below(3))),
                ..WorkTree::default()
            }),
            RepositoryRequest::HasFile { .. } => RepositoryAnswer::HasFile(!unlucky),
            _ => RepositoryAnswer::Removed,
        };
        let after = self.below(3_000);
        self.schedule(after, Happening::Repository { ticket, answer });
    }

    fn end_leftover(&mut self, _leftover: &Leftover) {
        self.hub.shared().call();
    }

    fn notify(&mut self, _notice: &TerminalNotice) -> bool {
        true
    }

    fn warn(&mut self, what: &str) {
        self.hub.shared().note(format_args!("warning: {what}"));
    }

    fn prompt(&mut self, _question: Option<&str>) {}
}
