//! What humans want of runs: a word for the machine, for the process that drives the run, or for its
//! hook.

use aldis_engine::{Engine, EngineError};
use aldis_machine::phases;
use aldis_signal::time::Timestamp;
use aldis_store::{Driver as DrivenBy, Run, RunId, Source};
use serde_json::Value;

use super::{Answer, Keeper, KeeperError, News, delivery, machine_of};
use crate::cli::control;
use crate::engine::machines::{self, Members, Wish};
use crate::hosts::state_file;

impl Keeper {
    /// Does what a human wants of a run.
    pub(crate) fn wish(
        &self,
        now: Timestamp,
        id: &RunId,
        wish: &Wish,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        let run = self.load(id)?;
        if run.record.driver != DrivenBy::Server && run.record.machine != machines::PHASES {
            return self.tell(now, run, wish, source);
        }
        if delivery::is_one(&run) {
            return self.advance(now, id, &delivery::wished(wish), source);
        }
        let machine = machine_of(&run)?;
        let impossible = || {
            let name = machine.name();
            KeeperError::Bad(format!("a run of the machine `{name}` cannot do that"))
        };
        let Value::Object(event) = machine.wish(wish).ok_or_else(impossible)? else {
            return Err(impossible());
        };
        if run.record.driver != DrivenBy::Server {
            return self.wish_of_hook(now, run, event, source);
        }
        self.advance(now, id, &event, source)
    }

    /// A run or delivery that has a process of its own is told; the process does it.
    fn tell(
        &self,
        now: Timestamp,
        run: Run,
        wish: &Wish,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        let id = run.id.clone();
        if let Some(known) = source.map(|source| self.answered(&id, source)).transpose()?.flatten()
        {
            return Ok(known);
        }
        let told = control::tell(&*self.store, now, run, wish, source);
        let told = told.map_err(|error| KeeperError::Failed(error.to_string()))?;
        (self.nudge)(News::default());
        let refused = || control::refusal(wish).to_owned();
        Ok(Answer {
            run: self.load(&id)?,
            effects: Vec::new(),
            replies: Vec::new(),
            warnings: told.is_none().then(refused).into_iter().collect(),
            decision: Value::Null,
            repeated: false,
        })
    }

    /// A run under a Stop hook has a view in its project, which its driver keeps.
    fn wish_of_hook(
        &self,
        now: Timestamp,
        run: Run,
        event: Members,
        source: Option<&str>,
    ) -> Result<Answer, KeeperError> {
        let id = run.id;
        let event = serde_json::from_value(Value::Object(event))
            .map_err(|error| KeeperError::Bad(error.to_string()))?;
        let engine = Engine::new(std::sync::Arc::clone(&self.store));
        let source = source.map(Source::new);
        let stepped = engine.open::<phases::State>(&id).and_then(|mut run| {
            let outcome = engine.step(now, &mut run, event, source.as_ref())?;
            Ok((run, outcome))
        });
        let (effects, replies) = (Vec::new(), Vec::new());
        match stepped {
            Ok((mut run, outcome)) => {
                let view = state_file::refresh(&engine, now, &mut run);
                (self.nudge)(News::default());
                let warnings = view.err().into_iter().collect();
                let decision = serde_json::to_value(outcome.decision()).unwrap_or_default();
                let run = self.load(&id)?;
                Ok(Answer { run, effects, replies, warnings, decision, repeated: false })
            }
            Err(EngineError::Contended(_)) if source.is_some() => {
                let (run, warnings, decision) = (self.load(&id)?, Vec::new(), Value::Null);
                Ok(Answer { run, effects, replies, warnings, decision, repeated: true })
            }
            Err(EngineError::Store(error)) => Err(error.into()),
            Err(error) => Err(KeeperError::Conflict(error.to_string())),
        }
    }
}
