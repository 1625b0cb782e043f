//! What one kind of run is to the coordinator: the meaning of its effects, and of what happens.

use aldis_machine::run::Exit;
use aldis_machine::{HumanCommand, Machine, Outcome};
use aldis_signal::time::Timestamp;

use super::coordinator::{self, Core};
use super::world::{JobId, OutputStream, RepositoryAnswer, Ticket};
use crate::error::CommandError;

/// What effects and happenings mean for the runs of one machine. Whatever can fail fails if the store
/// does.
pub(crate) trait Conduct: Sized {
    /// Whose runs.
    type Machine: Machine;
    /// How this process leaves a run.
    type End;

    /// Performs an effect.
    fn perform(
        &mut self,
        core: &mut CoreOf<'_, Self>,
        effect: <Self::Machine as Machine>::Effect,
        key: &str,
    ) -> Result<Performed, CommandError>;

    /// A process wrote something.
    fn on_output(
        &mut self,
        core: &mut CoreOf<'_, Self>,
        job: JobId,
        stream: OutputStream,
        bytes: &[u8],
    ) -> Result<(), CommandError>;

    /// A process has ended with everything it started.
    fn on_over(
        &mut self,
        core: &mut CoreOf<'_, Self>,
        job: JobId,
        exit: Exit,
    ) -> Result<(), CommandError>;

    /// A process stopped itself.
    fn on_stopped(&mut self, core: &mut CoreOf<'_, Self>, job: JobId);

    /// The repository answered.
    fn on_answer(
        &mut self,
        core: &mut CoreOf<'_, Self>,
        ticket: Ticket,
        answer: RepositoryAnswer,
    ) -> Result<(), CommandError>;

    /// Returns what a line means that the person at the terminal typed; nothing if it means nothing.
    fn command_of(&self, core: &CoreOf<'_, Self>, line: &str) -> Option<HumanCommand>;

    /// The user or the system wants this process to end.
    fn on_interrupt(&mut self, core: &mut CoreOf<'_, Self>, by: &str) -> Result<(), CommandError>;

    /// Time passed.
    fn on_time(&mut self, core: &mut CoreOf<'_, Self>) -> Result<(), CommandError>;

    /// Returns when time matters next, beside the machine's own time.
    fn next_deadline(&self, core: &CoreOf<'_, Self>) -> Option<Timestamp>;

    /// Shows what came of an event.
    fn decided(
        &mut self,
        core: &CoreOf<'_, Self>,
        outcome: &Outcome<<Self::Machine as Machine>::Effect>,
    );

    /// Shows that something beside the run went wrong.
    fn problem(&mut self, now: Timestamp, what: &str);

    /// Draws how the run stands. Returns what the person at the terminal is asked.
    fn draw(&mut self, core: &CoreOf<'_, Self>) -> Option<String>;

    /// Tells the machine what happened, and performs what it decides.
    fn advance(
        &mut self,
        core: &mut CoreOf<'_, Self>,
        event: <Self::Machine as Machine>::Event,
    ) -> Result<(), CommandError> {
        coordinator::advance(core, self, event)
    }

    /// The right under which steps are taken is lost: what is at work under it ends.
    fn lost(&mut self, core: &mut CoreOf<'_, Self>) -> Result<(), CommandError> {
        Err(CommandError::new(format!("run {} has passed to somebody else", core.id())))
    }

    /// Returns whether what goes on now is to end soon, so that nothing may hold that up.
    fn is_ending(&self, core: &CoreOf<'_, Self>) -> bool {
        self.end(core).is_some()
    }

    /// Returns how this process leaves the run, if it does now.
    fn end(&self, core: &CoreOf<'_, Self>) -> Option<Self::End>;
}

/// What a conduct works with.
pub(crate) type CoreOf<'w, C> = Core<'w, <C as Conduct>::Machine>;

/// How an effect was performed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Performed {
    /// It is done.
    Done,
    /// It is done when this has happened; others go on.
    Until(Awaited),
    /// It is done when this has happened; those after it wait.
    After(Awaited),
}

/// What an effect can wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Awaited {
    /// An answer of the repository.
    Answer(Ticket),
    /// The end of a process.
    End(JobId),
}
