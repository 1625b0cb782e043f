//! The supervisor: hands and ears of the machine, as `aldis::coordinate::running` has them.

use aldis_machine::run::{Effect, Event, Exit, Status, Tree};
use aldis_store::{Fault, FaultKind, When};

use super::super::super::oracle::{Check, hold};
use super::super::agent::{Agent, Job};
use super::super::engine::{Due, Failure};
use super::super::oracle::Books;
use super::{Go, Halt, World, broken};

impl World {
    /// One round of the supervisor: what its job does, the time, what others want.
    pub(super) fn supervise(&mut self) -> Go {
        self.dies_here(1)?;
        let boot = self.boot;
        let due = self.life.as_ref().and_then(|life| life.deadline).is_some_and(|at| boot >= at);
        if due {
            self.end_job()?;
        } else {
            self.listen()?;
        }
        if self.rng.chance(30)
            && let Some(late) = self.life.as_mut().and_then(|life| life.late.take())
        {
            self.deliver(late)?;
        }
        self.refresh()?;
        if self.life.as_ref().is_some_and(|life| life.job.is_some()) && self.rng.chance(10) {
            let tree = self.look();
            self.deliver(Event::Looked(tree))?;
        }
        self.deliver(Event::Tick)?;
        if !self.calm && self.rng.chance(1) {
            self.deliver(Event::Abort { by: "Ctrl-C".to_owned() })?;
        }
        self.perform()
    }

    /// What the job does next. Events get lost on the way, come late, or twice.
    fn listen(&mut self) -> Go {
        let now = self.now();
        let calm = self.calm;
        let Some(life) = &mut self.life else { return Ok(()) };
        let event = match &mut life.job {
            None => None,
            Some(Job::Agent(agent)) if calm && !agent.asked => None,
            Some(Job::Agent(agent)) => agent.act(&mut self.rng, now),
            Some(Job::Check) if self.rng.chance(40) || calm => {
                let passed = self.rng.chance(60);
                Some(Event::Checked { passed, output: "the end".to_owned() })
            }
            Some(Job::Check) => None,
        };
        let Some(event) = event else { return Ok(()) };
        if matches!(event, Event::Exited(_) | Event::Checked { .. }) {
            // What it said was read to its end.
            (life.job, life.deadline, life.late) = (None, None, None);
        } else if self.faulty && !calm && self.rng.chance(3) {
            self.tally.faults += 1;
            let late = life.late.replace(event);
            return late.map_or(Ok(()), |late| self.deliver(late));
        }
        // The end of a process is told once, by whoever holds it.
        let twice = self.faulty && !calm && self.rng.chance(3);
        let again = (twice && !matches!(event, Event::Exited(_))).then(|| event.clone());
        self.deliver(event)?;
        if let Some(again) = again {
            self.tally.faults += 1;
            self.deliver(again)?;
        }
        Ok(())
    }

    /// The job has had its time.
    fn end_job(&mut self) -> Go {
        let Some(life) = &mut self.life else { return Ok(()) };
        (life.deadline, life.late) = (None, None);
        match life.job.take() {
            None => Ok(()),
            Some(Job::Agent(_)) => {
                self.deliver(Event::Exited(Exit { code: None, signal: Some(9) }))
            }
            Some(Job::Check) => {
                self.deliver(Event::Checked { passed: false, output: String::new() })
            }
        }
    }

    fn look(&mut self) -> Tree {
        if self.rng.chance(30) {
            self.tree += 1;
            self.dirty = self.rng.chance(40);
        }
        let fingerprint = Some(self.tree.to_string());
        Tree { fingerprint, head: None, dirty: self.dirty, conflicts: false }
    }

    /// Performs everything that was decided, in order.
    pub(super) fn perform(&mut self) -> Go {
        while let Some(Due { key, effect }) = self.engine.due() {
            self.dies_here(1)?;
            let next = self.act(effect)?;
            self.dies_here(1)?;
            self.engine.performed(&key);
            self.dies_here(1)?;
            if !self.calm && self.rng.chance(2) {
                self.human()?;
            }
            if let Some(event) = next {
                self.deliver(event)?;
            }
        }
        if self.engine.known().ending().is_some() {
            // Its agent goes with it.
            self.life = None;
            self.engine.lose();
            return Ok(());
        }
        self.judge_hands()
    }

    fn act(&mut self, effect: Effect) -> Go<Option<Event>> {
        let boot = self.boot;
        let Some(life) = &mut self.life else { return Ok(None) };
        match effect {
            Effect::Start { .. } => return self.start(),
            Effect::Check => {
                hold(life.job.is_none(), "one_process_at_a_time", || format!("{:?}", life.job))?;
                life.job = Some(Job::Check);
                let most = self.engine.known().config.iteration_timeout;
                life.deadline = Some(boot + most * 1_000);
            }
            Effect::End { grace } => {
                if let Some(Job::Agent(agent)) = &mut life.job {
                    agent.asked = true;
                    life.deadline = Some(boot + grace * 1_000);
                }
            }
            Effect::Suspend | Effect::Continue => {
                if let Some(Job::Agent(agent)) = &mut life.job {
                    agent.suspended = effect == Effect::Suspend;
                }
            }
            Effect::Look => return Ok(Some(Event::Looked(self.look()))),
            Effect::Ask { .. }
            | Effect::KeepWork
            | Effect::Notice { .. }
            | Effect::Finish { .. } => {}
        }
        Ok(None)
    }

    fn start(&mut self) -> Go<Option<Event>> {
        self.refresh()?;
        if self.engine.known().ending().is_some() {
            return Ok(None);
        }
        self.agents += 1;
        let agent = Agent::new(&mut self.rng, self.agents);
        let name = agent.name.clone();
        if let Some(life) = &mut self.life {
            hold(life.job.is_none(), "one_process_at_a_time", || format!("{:?}", life.job))?;
            (life.job, life.deadline) = (Some(Job::Agent(agent)), None);
        }
        self.books.started();
        self.note("started", None);
        Ok(Some(Event::Launched { agent: name }))
    }

    /// Where the run needs a process, there is one: nothing waits for what never comes.
    fn judge_hands(&self) -> Go {
        let stored = self.engine.stored();
        let job = self.life.as_ref().and_then(|life| life.job.as_ref());
        let there = match stored.status {
            Status::Working => matches!(job, Some(Job::Agent(agent)) if !agent.suspended),
            Status::Paused { .. } => matches!(job, Some(Job::Agent(agent)) if agent.suspended),
            Status::Ending { .. } => matches!(job, Some(Job::Agent(agent)) if agent.asked),
            Status::Checking => matches!(job, Some(Job::Check)),
            Status::Limited { .. } | Status::Asking => job.is_none(),
            Status::Ready | Status::Looking => false,
            // Somebody else has just ended it.
            Status::Ended { .. } => true,
        };
        Ok(hold(there, "somebody_does_what_is_due", || {
            format!("{:?} with {job:?}", stored.status)
        })?)
    }

    /// The supervisor notices what others have decided, and does it.
    fn refresh(&mut self) -> Go {
        let now = self.now();
        match self.engine.refresh(now) {
            Ok(()) => Ok(self.judge()?),
            Err(Failure::Store) => Err(Halt::Death),
            Err(other) => Err(Halt::Broken(broken(other))),
        }
    }

    /// Tells the machine what happened, if the store lets it.
    pub(super) fn deliver(&mut self, event: Event) -> Go {
        if self.life.is_none() {
            return Ok(());
        }
        if self.faulty && !self.calm && self.rng.chance(1) {
            let when = if self.rng.chance(50) { When::Before } else { When::After };
            self.engine.fail_next(Some(Fault { when, kind: FaultKind::Io }));
        }
        self.tally.events += 1;
        self.note("took", Some(&event));
        let now = self.now();
        let before = self.engine.known().clone();
        let alone = self.engine.stored().status == before.status;
        self.books.delivers(&before, &event);
        let taken = self.engine.advance(now, event.clone());
        self.engine.fail_next(None);
        match taken {
            Ok(()) => {}
            Err(Failure::Store) => return Err(Halt::Death),
            Err(other) => return Err(Halt::Broken(broken(other))),
        }
        self.tally.steps += 1;
        if alone {
            Books::judge_claim(&before, self.engine.known(), &event)?;
        }
        Ok(self.judge()?)
    }

    /// What is stored is what counts.
    pub(super) fn judge(&mut self) -> Check {
        let now = self.life.is_some().then(|| self.now());
        let stored = self.engine.stored();
        self.books.judge(now, &stored)
    }
}
