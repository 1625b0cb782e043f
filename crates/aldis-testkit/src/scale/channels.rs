//! Channels in which agents speak in turn. Some are played by the engine, the others are counted with them.

use std::time::Duration;

use aldis_engine::{Engine, EngineError, Handle, NewRun};
use aldis_machine::turns::{Config, Event, MessageReader, Start, State};
use aldis_store::{Driver, RunId};

use super::{Job, Statement, World};

/// How many are played.
const PLAYED: usize = 2_000;
const TEXT: &str = "I have looked at the plan again and would rather keep the smaller change: it is \
                    easier to review, and what is missing can follow once the tests pass.";

pub(super) struct Channels {
    played: Vec<Handle<State>>,
    reader: MessageReader,
    /// How long until the next message anywhere but in those.
    gap: Option<Duration>,
    /// Messages, counted ones included.
    pub(super) messages: u64,
}

impl Channels {
    pub(super) fn open(engine: &Engine, world: &mut World) -> Result<Self, EngineError> {
        let mut played = Vec::new();
        for channel in 0..world.options.channels.min(PLAYED) {
            let name = format!("channel-{channel}");
            let id = RunId::new(&*name).map_err(|error| EngineError::Invalid(error.to_string()))?;
            let agents = ["pm", "dev"].map(str::to_owned).to_vec();
            let start = Start { channel: name, agents, ..Start::default() };
            let new = NewRun { id: Some(id), ..NewRun::of("", Driver::Server) };
            played.push(engine.begin::<State>(world.at(), &new, start)?.0);
            let first = world.draw(world.options.message);
            world.after(first, Job::Message { channel });
        }
        let others = world.options.channels - played.len();
        let gap = (others > 0).then(|| world.options.message.div_f64(others as f64));
        let reader = MessageReader::new(&Config::default());
        if gap.is_some() {
            world.after(0.0, Job::Counted);
        }
        Ok(Self { played, reader, gap, messages: 0 })
    }

    /// Somebody speaks and passes the turn on.
    pub(super) fn message(
        &mut self,
        engine: &Engine,
        world: &mut World,
        channel: usize,
    ) -> Result<(), EngineError> {
        let run = &mut self.played[channel];
        let agent = run.state().active_agent().unwrap_or("pm").to_owned();
        let messages = vec![self.reader.read(&format!("{TEXT}\n\nTURN_COMPLETE"))];
        let before = run.revision();
        run.advance(engine, world.at(), Event::Message { agent, turn: None, messages })?;
        run.flush(engine, world.at())?;
        for _ in before.0..run.revision().0 {
            world.ask(channel, Statement::Step);
        }
        self.messages += 1;
        let next = world.draw(world.options.message);
        world.after(next, Job::Message { channel });
        Ok(())
    }

    /// Somebody speaks in a channel that is not played: one step, as in those that are.
    pub(super) fn counted(&mut self, world: &mut World) {
        let Some(gap) = self.gap else { return };
        let project = world.rng.below(usize::MAX);
        world.ask(project, Statement::Step);
        self.messages += 1;
        let next = world.draw(gap);
        world.after(next, Job::Counted);
    }
}
