//! `aldis pause`, `resume`, `abort` and `answer`: a human's word about a run or a delivery.

use std::env;
use std::io::Write as _;

use aldis_machine::{delivery, run};
use aldis_signal::time::Timestamp;
use aldis_store::{Run, RunFilter, Store};
use clap::Args;

use super::{Outcome, why};
use crate::engine::book::{self, Book};
use crate::engine::journal::Open;
use crate::engine::machines::Wish;
use crate::engine::stored::Machine as _;
use crate::error::CommandError;
use crate::io::Io;
use crate::settings::clock;
use crate::settings::home;
use crate::settings::project::{self, Place};
use crate::view::display;
use crate::view::known::Known;
use aldis_process::{Found, Identity, find};

/// How many runs of a project are looked at for the one that is meant.
const RUNS_MAX: usize = 20;
/// How a run stands that nobody works on.
const ENDED: &str = "ended";
/// How much of a title is shown.
const TITLE_MAX: usize = 60;

/// Names the run.
#[derive(Debug, Args)]
pub(super) struct ControlArgs {
    /// The run; by default the latest of this project
    run: Option<String>,
}

/// Answer a question of a run
///
/// The agent is told the answer in its next prompt.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// The question, as it was shown
    id: String,

    /// The answer
    text: String,

    /// The run; by default the one of this project that asks
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// Suspends the agent, or starts no further ones.
pub(super) fn pause(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    say(io, args.run.as_deref(), &Wish::Pause)
}

/// Lets it go on.
pub(super) fn resume(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    say(io, args.run.as_deref(), &Wish::Resume)
}

/// Ends the run.
pub(super) fn abort(io: &mut Io, args: &ControlArgs) -> Result<Outcome, CommandError> {
    say(io, args.run.as_deref(), &Wish::Abort)
}

/// Answers a question.
pub(super) fn answer(io: &mut Io, args: &AnswerArgs) -> Result<Outcome, CommandError> {
    let (id, text) = (args.id.clone(), args.text.clone());
    say(io, args.run.as_deref(), &Wish::Answer { id, text })
}

/// Tells a run something. Whoever coordinates it notices.
fn say(io: &mut Io, name: Option<&str>, word: &Wish) -> Result<Outcome, CommandError> {
    let store = home::open_store(io.state_dir.as_deref())?;
    let mut runs = chosen(&store, name)?;
    if let (Wish::Answer { id, .. }, None) = (word, name) {
        runs.retain(|run| asks(&store, run, id));
        if runs.is_empty() {
            runs = elsewhere(&store, id)?;
        }
    }
    if runs.is_empty() && !matches!(word, Wish::Answer { .. }) {
        writeln!(io.stderr, "there is no such run here; `aldis status` lists the runs")?;
        return Ok(Outcome::No);
    }
    let now = clock::wall();
    for run in &runs {
        if let Some(status) = tell(&store, now, run.clone(), word, None)? {
            let title = display::excerpt(&run.record.title, TITLE_MAX);
            if matches!(word, Wish::Answer { .. }) && status == ENDED {
                writeln!(io.stdout, "run {} has the answer: {title}", run.id)?;
                writeln!(io.stdout, "  go on with it: aldis run --continue")?;
            } else {
                writeln!(io.stdout, "run {} is now {status}: {title}", run.id)?;
            }
            return Ok(Outcome::Yes);
        }
        // Only a question says by itself which run is meant.
        if !matches!(word, Wish::Answer { .. }) {
            break;
        }
    }
    let refusal = refusal(word);
    writeln!(io.stderr, "{refusal}; `aldis status` shows what is going on")?;
    Ok(Outcome::No)
}

/// Whether a run asks this.
fn asks(store: &dyn Store, run: &Run, id: &str) -> bool {
    let known = Known::of(store, run.clone());
    known.is_ok_and(|known| known.questions().iter().any(|(asked, ..)| asked == id))
}

/// The only run of any other project that asks this.
fn elsewhere(store: &dyn Store, id: &str) -> Result<Vec<Run>, CommandError> {
    let active = RunFilter { active: Some(true), ..RunFilter::default() };
    let mut runs = all(store, &active)?;
    runs.retain(|run| asks(store, run, id));
    if runs.len() > 1 {
        let names: Vec<String> = runs.iter().map(|run| run.id.to_string()).collect();
        return Err(CommandError::new(format!("several runs ask {id}: {}", names.join(", ")))
            .with_help("say which: aldis answer --run RUN ID TEXT"));
    }
    Ok(runs)
}

fn all(store: &dyn Store, filter: &RunFilter) -> Result<Vec<Run>, CommandError> {
    Ok(store.loaded(filter)?.into_iter().map(|loaded| loaded.run).collect())
}

/// Says why a word meant nothing.
pub(crate) fn refusal(word: &Wish) -> &'static str {
    match word {
        Wish::Pause => "the run does not work at the moment",
        Wish::Resume => "the run is not suspended",
        Wish::Abort => "the run has ended",
        Wish::Answer { .. } => "nobody asks that",
    }
}

/// Tells a run or a delivery something. Returns how it stands then, if the word meant anything to it.
/// `source` is the key of the request, for when it comes again.
///
/// # Errors
///
/// Fails if the store does, or if what it has cannot be understood.
pub(crate) fn tell(
    store: &dyn Store,
    now: Timestamp,
    run: Run,
    word: &Wish,
    source: Option<&str>,
) -> Result<Option<String>, CommandError> {
    match &*run.record.machine {
        book::NAME => tell_delivery(store, now, &run, word, source),
        _ => tell_run(store, now, run, word, source),
    }
}

/// Returns how the run stands then, if the word meant anything to it.
fn tell_run(
    store: &dyn Store,
    now: Timestamp,
    run: Run,
    word: &Wish,
    source: Option<&str>,
) -> Result<Option<String>, CommandError> {
    let mut open = Open::<run::State>::load(run)?;
    open.source = source.map(str::to_owned);
    let event = match word {
        Wish::Pause => run::Event::Pause { by: String::new() },
        Wish::Resume => run::Event::Resume { by: String::new() },
        Wish::Abort => run::Event::Abort { by: "`aldis abort`".to_owned() },
        Wish::Answer { id, text } => {
            run::Event::Answer { id: id.clone(), text: text.clone(), by: String::new() }
        }
    };
    // Where nobody supervises there is nobody to suspend; the time until somebody does is no work.
    // An agent that is just being started has no name yet.
    let gone = open.state.agent.is_some() && is_gone(&open.state);
    if matches!(word, Wish::Pause | Wish::Resume) && gone {
        return Ok(None);
    }
    if !open.advance(store, now, event)? {
        return Ok(None);
    }
    // An agent that is not there any more will not report its end.
    if matches!(word, Wish::Abort) && is_gone(&open.state) {
        let nobody = run::Exit { code: None, signal: None };
        open.advance(store, now, run::Event::Exited(nobody.into()))?;
    }
    Ok(Some(open.state.status.name().to_owned()))
}

fn is_gone(state: &run::State) -> bool {
    let identity =
        state.agent.as_deref().and_then(|agent| serde_json::from_str::<Identity>(agent).ok());
    identity.is_none_or(|identity| matches!(find(&identity), Found::Gone))
}

/// Returns how the delivery stands then, if the word meant anything to it.
fn tell_delivery(
    store: &dyn Store,
    now: Timestamp,
    run: &Run,
    word: &Wish,
    source: Option<&str>,
) -> Result<Option<String>, CommandError> {
    let mut book = Book::load(store, &run.id)?;
    let event = match word {
        Wish::Pause => delivery::Event::Pause { by: String::new() },
        Wish::Resume => delivery::Event::Resume { by: String::new() },
        Wish::Abort => delivery::Event::Abort { by: "`aldis abort`".to_owned() },
        Wish::Answer { id, text } => {
            delivery::Event::Answer { id: id.clone(), text: text.clone(), by: String::new() }
        }
    };
    let outcome = book.advance_for(store, now, &event, source)?;
    Ok((!outcome.is_nothing()).then(|| match book.state.ending() {
        Some(ending) => ending.as_str().to_owned(),
        None if book.state.run().paused => "paused".to_owned(),
        None => "going on".to_owned(),
    }))
}

/// The runs that may be meant: the one named, else those of this project, the latest first.
fn chosen(store: &dyn Store, name: Option<&str>) -> Result<Vec<Run>, CommandError> {
    if let Some(name) = name {
        return Ok(store.run(&why::find(store, name)?)?.into_iter().collect());
    }
    let directory = env::current_dir()
        .map_err(|error| CommandError::new(format!("the current directory: {error}")))?;
    let place = Place::of(&directory, None);
    let projects = place.around().map(project::name).collect();
    let filter = RunFilter { projects, limit: RUNS_MAX, ..RunFilter::default() };
    let mut runs = all(store, &filter)?;
    runs.retain(|run| [run::State::NAME, book::NAME].contains(&&*run.record.machine));
    // One that goes on is meant before one that ended later.
    runs.sort_by_key(|run| !run.record.active);
    Ok(runs)
}
