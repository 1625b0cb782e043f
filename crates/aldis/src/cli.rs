//! The commands: arguments in, exit code out.

mod agent_reaper;
mod attach;
mod auto;
mod check_flags;
mod completions;
mod config;
mod control;
mod deliver;
mod demo;
mod detach;
mod dialects;
mod doctor;
mod explain;
mod groups;
mod hook;
mod host_flags;
mod init;
mod install;
mod log;
mod logging;
mod man;
mod mcp;
mod output;
mod phase_check;
mod plan;
mod postmortem;
mod prompt;
mod proof;
mod replay;
mod report;
mod run;
mod scan;
mod schema;
mod serve;
mod signal;
mod status;
mod step;
mod store;
mod tasks;
mod token;
mod trust;
mod uninstall;
mod watch;
mod why;
mod worker;

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand, ValueHint};

use self::logging::{Logging, Manner};
use crate::error::CommandError;
use crate::io::{Color, Io};
use crate::view::display;
use crate::view::paint::Paint;

/// Keeps coding agents working until the job is done, and tells you why they stopped
///
/// Coding agents print markers such as `TASK_COMPLETE` or `<promise>DONE</promise>`. Aldis reads them,
/// ignores those that are only quoted, planned or retracted, and keeps the agent working until it is
/// really done.
///
/// Exit codes: 0 yes, 1 no, 2 usage or input error.
#[derive(Debug, Parser)]
#[command(name = "aldis", version, max_term_width = 100)]
struct Cli {
    /// When to use colour: always, auto or never
    ///
    /// Default: on a terminal, unless NO_COLOR is set.
    #[arg(long, global = true, value_enum, default_value_t = Color::Auto, value_name = "WHEN")]
    #[arg(hide_possible_values = true, hide_default_value = true, display_order = 900)]
    color: Color,

    /// Where to keep runs and decisions
    ///
    /// Default: `$ALDIS_STATE_DIR`, else `aldis` in `$XDG_STATE_HOME` or `~/.local/state`.
    #[arg(long, global = true, value_name = "DIR", value_hint = ValueHint::DirPath)]
    #[arg(display_order = 901)]
    state_dir: Option<PathBuf>,

    #[command(flatten)]
    logging: Logging,

    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// End a run
    Abort(control::ControlArgs),
    AgentReaper(agent_reaper::AgentReaperArgs),
    Answer(control::AnswerArgs),
    Attach(attach::AttachArgs),
    #[command(subcommand)]
    Auto(auto::AutoCommand),
    Completions(completions::CompletionsArgs),
    #[command(subcommand)]
    Config(config::ConfigCommand),
    Deliver(Box<deliver::DeliverArgs>),
    Demo(demo::DemoArgs),
    DemoAgent(demo::DemoAgentArgs),
    #[command(subcommand)]
    Dialects(dialects::DialectsCommand),
    Doctor(doctor::DoctorArgs),
    Explain(explain::ExplainArgs),
    Hook(hook::HookArgs),
    Init(init::InitArgs),
    Install(install::InstallArgs),
    Log(log::LogArgs),
    Man(man::ManArgs),
    Mcp(mcp::McpArgs),
    Output(output::OutputArgs),
    PhaseCheck(phase_check::PhaseCheckArgs),
    /// Pause a run
    Pause(control::ControlArgs),
    #[command(subcommand)]
    Plan(plan::PlanCommand),
    Postmortem(postmortem::PostmortemArgs),
    Prompt(prompt::PromptArgs),
    #[command(subcommand)]
    Proof(proof::ProofCommand),
    Replay(replay::ReplayArgs),
    Report(report::ReportArgs),
    /// Resume a paused run, or end a wait for a limit or after a crash
    Resume(control::ControlArgs),
    Run(Box<run::RunArgs>),
    Scan(scan::ScanArgs),
    Schema(schema::SchemaArgs),
    Serve(serve::ServeArgs),
    Signal(signal::SignalArgs),
    Status(status::StatusArgs),
    Step(step::StepArgs),
    #[command(subcommand)]
    Store(store::StoreCommand),
    Tasks(tasks::TasksArgs),
    Tell(control::TellArgs),
    #[command(subcommand)]
    Token(token::TokenCommand),
    Trust(trust::TrustArgs),
    Uninstall(uninstall::UninstallArgs),
    Watch(watch::WatchArgs),
    Why(why::WhyArgs),
    Worker(worker::WorkerArgs),
}

impl Command {
    /// Returns how it logs. What a host or an agent waits for, and what acts for an agent, does not.
    fn logs(&self) -> Option<Manner> {
        match self {
            Self::Hook(_) | Self::AgentReaper(_) | Self::DemoAgent(_) => None,
            Self::Serve(_) | Self::Worker(_) => Some(Manner::Service),
            Self::Watch(_) => Some(Manner::FullScreen),
            _ => Some(Manner::Lines),
        }
    }
}

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outcome {
    /// Success, or something was found.
    Yes,
    /// Failure by rule, or nothing was found.
    No,
    /// Something could not be read, and that was reported.
    Error,
    /// What a supervised run ended with.
    Code(u8),
}

impl Outcome {
    fn code(self) -> u8 {
        match self {
            Self::Yes => 0,
            Self::No => 1,
            Self::Error => 2,
            Self::Code(code) => code,
        }
    }
}

/// Parses arguments, runs the command and reports its error. Returns the exit code.
pub(crate) fn run(args: impl IntoIterator<Item = OsString>, io: &mut Io) -> u8 {
    let args: Vec<OsString> = args.into_iter().collect();
    // Describing every command first would cost a hook a tenth of its time.
    if let [_, command, host] = &*args
        && command == "hook"
        && let Some(hook) = hook::HookArgs::plain(host)
    {
        return hook::run(io, &hook).code();
    }
    let cli = match parse(&args) {
        Ok(cli) => cli,
        // A usage error would be an answer: hosts read exit codes as decisions.
        Err(error) if error.use_stderr() && means_hook(&args) => {
            hook::misused(&error);
            return Outcome::Yes.code();
        }
        Err(error) => return report_usage(io, &error),
    };
    io.set_color(cli.color);
    io.state_dir = cli.state_dir;
    io.verbose = cli.logging.is_verbose();
    if let Some(manner) = cli.command.logs()
        && let Err(error) = cli.logging.start(manner, io.color_stderr)
    {
        report(io, &error);
        return Outcome::Error.code();
    }
    // Nothing after it may change what the host is told.
    if let Command::Hook(args) = &cli.command {
        return hook::run(io, args).code();
    }
    let result = perform(io, cli.command);
    match result.and_then(|outcome| Ok(io.stdout.flush().map(|()| outcome)?)) {
        Ok(outcome) => outcome.code(),
        Err(CommandError::Closed) => Outcome::Yes.code(),
        Err(error) => {
            report(io, &error);
            Outcome::Error.code()
        }
    }
}

fn parse(args: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = groups::grouped(Cli::command());
    let mut matches = command.try_get_matches_from_mut(args)?;
    Cli::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command))
}

/// Runs a command.
fn perform(io: &mut Io, command: Command) -> Result<Outcome, CommandError> {
    match command {
        Command::Abort(args) => control::abort(io, &args),
        Command::AgentReaper(args) => agent_reaper::run(args),
        Command::Answer(args) => control::answer(io, &args),
        Command::Attach(args) => attach::run(io, &args),
        Command::Auto(command) => auto::run(io, command),
        Command::Completions(args) => completions::run(io, &args),
        Command::Config(command) => config::run(io, &command),
        Command::Deliver(args) => deliver::run(io, &args),
        Command::Demo(args) => demo::run(io, &args),
        Command::DemoAgent(args) => demo::agent(io, &args),
        Command::Dialects(command) => dialects::run(io, command),
        Command::Doctor(args) => doctor::run(io, &args),
        Command::Explain(args) => explain::run(io, args),
        Command::Hook(args) => Ok(hook::run(io, &args)),
        Command::Init(args) => init::run(io, &args),
        Command::Log(args) => log::run(io, &args),
        Command::Man(args) => man::run(io, &args),
        Command::Mcp(args) => mcp::run(io, &args),
        Command::Install(args) => install::run(io, &args),
        Command::Output(args) => output::run(io, &args),
        Command::PhaseCheck(args) => phase_check::run(io, &args),
        Command::Pause(args) => control::pause(io, &args),
        Command::Plan(command) => plan::run(io, command),
        Command::Postmortem(args) => postmortem::run(io, &args),
        Command::Prompt(args) => prompt::run(io, &args),
        Command::Proof(command) => proof::run(io, &command),
        Command::Replay(args) => replay::run(io, &args),
        Command::Report(args) => report::run(io, &args),
        Command::Resume(args) => control::resume(io, &args),
        Command::Run(args) => run::run(io, &args),
        Command::Scan(args) => scan::run(io, args),
        Command::Schema(args) => schema::run(io, &args),
        Command::Serve(args) => serve::run(io, &args),
        Command::Signal(args) => signal::run(io, args),
        Command::Status(args) => status::run(io, &args),
        Command::Step(args) => step::run(io, &args),
        Command::Store(command) => store::run(io, &command),
        Command::Token(command) => token::run(io, &command),
        Command::Trust(args) => trust::run(io, &args),
        Command::Tasks(args) => tasks::run(io, &args),
        Command::Tell(args) => control::tell(io, &args),
        Command::Watch(args) => watch::run(io, &args),
        Command::Why(args) => why::run(io, &args),
        Command::Worker(args) => worker::run(io, &args),
        Command::Uninstall(args) => uninstall::run(io, &args),
    }
}

/// Does what another command does, with these arguments, as if somebody had typed it.
fn as_typed(io: &mut Io, args: &[&str]) -> Result<Outcome, CommandError> {
    let args: Vec<OsString> = ["aldis"].iter().chain(args).map(OsString::from).collect();
    let cli = parse(&args).map_err(|error| CommandError::new(error.to_string()))?;
    perform(io, cli.command)
}

/// Returns whether these are the arguments of a hook, however wrong.
fn means_hook(args: &[OsString]) -> bool {
    let mut args = args.iter().skip(1);
    while let Some(arg) = args.next() {
        let takes_value = arg == "--color" || arg == "--state-dir";
        if takes_value {
            args.next();
        } else if !arg.as_encoded_bytes().starts_with(b"-") {
            return arg == "hook";
        }
    }
    false
}

/// Checks files one after the other. Says what is wrong with each, or what was found in it.
fn check_files(
    io: &mut Io,
    files: &[PathBuf],
    check: impl Fn(&Path) -> Result<String, CommandError>,
) -> Result<Outcome, CommandError> {
    let mut outcome = Outcome::Yes;
    for file in files {
        let there = file.metadata().map_err(|error| CommandError::file(file, &error));
        let wrong = if there.is_err() { Outcome::Error } else { Outcome::No };
        match there.and_then(|_| check(file)) {
            Ok(found) => {
                let file = display::line(&file.display().to_string());
                writeln!(io.stdout, "{file}: ok, {found}")?;
            }
            Err(error) => {
                report(io, &error);
                outcome = if outcome == Outcome::Error { outcome } else { wrong };
            }
        }
    }
    Ok(outcome)
}

/// Shows an error on standard error.
fn report(io: &mut Io, error: &CommandError) {
    let CommandError::Failed { message, help } = error else { return };
    let paint = Paint { on: io.color_stderr };
    let message = display::lines(message);
    // Nobody is left to tell when this fails.
    let _written = writeln!(io.stderr, "{} {message}", paint.bad("error:"));
    if let Some(help) = help {
        let help = display::lines(help);
        let _written = writeln!(io.stderr, "{} {help}", paint.good(" help:"));
    }
}

fn report_usage(io: &mut Io, error: &clap::Error) -> u8 {
    let (stream, color) = if error.use_stderr() {
        (&mut io.stderr, io.color_stderr)
    } else {
        (&mut io.stdout, io.color_stdout)
    };
    let text = error.render();
    let text = if color { text.ansi().to_string() } else { text.to_string() };
    let _written = stream.write_all(text.as_bytes());
    u8::try_from(error.exit_code()).unwrap_or_else(|_| Outcome::Error.code())
}
