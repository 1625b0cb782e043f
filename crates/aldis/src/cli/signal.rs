//! `aldis signal`: reports of agents that have a shell and no MCP server, and of programs.

use std::io::Write as _;

use aldis_engine::CallRecord;
use aldis_machine::calls::{Call, CallFinding, Judgement, Need};
use aldis_signal::signal::Via;
use clap::{Args, Subcommand, ValueEnum};

use super::Outcome;
use crate::app::calls::answer::{CallReply, RefusalRule};
use crate::app::calls::{self, caller::Caller, elsewhere};
use crate::error::CommandError;
use crate::hosts::{Env, receipt, spool as tree_spool};
use crate::io::Io;
use crate::mcp::of_variables;
use crate::notify;
use crate::settings::remote::{CALL_PATIENCE, Remote, spool};
use crate::settings::{clock, home, project};
use crate::view::{display, json};

/// Report to the run you work for
///
/// For agents and programs in a run of Aldis. Prints whether the report counts. If a sandbox keeps the
/// store from being written, the report waits in `.aldis/spool` of the project. If that cannot be written
/// either, the command prints a receipt, which counts if the shell ran nothing else with it.
///
/// Exit codes: 0 accepted or recorded, 1 refused, 2 usage or input error.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  aldis signal done \"Added the CSV export\"
  aldis signal blocked \"no access to the staging database\" --needs access
  aldis signal progress 45
  aldis signal ask \"Keep the old endpoint?\" --option keep --option drop")]
pub(super) struct SignalArgs {
    #[command(subcommand)]
    report: SignalReport,

    /// Print one JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum SignalReport {
    /// Report that your work, phase or task is done
    Done {
        /// What you did
        #[arg(default_value = "done")]
        summary: String,
        /// The phase; `all` ends the whole workflow
        #[arg(long)]
        phase: Option<String>,
        /// Your task
        #[arg(long)]
        task: Option<String>,
    },
    /// Report that you cannot continue
    Blocked {
        /// Why
        reason: String,
        /// What is missing
        #[arg(long, value_enum, default_value = "information")]
        needs: Needs,
        /// Your task
        #[arg(long)]
        task: Option<String>,
    },
    /// Report how far the work is
    Progress {
        /// In percent
        #[arg(value_parser = clap::value_parser!(u8).range(0..=100))]
        percent: u8,
        /// What you have just done
        #[arg(default_value = "progress")]
        summary: String,
        /// Your task
        #[arg(long)]
        task: Option<String>,
    },
    /// Ask a human to decide something
    Ask {
        /// The question
        question: String,
        /// An answer to choose from
        #[arg(long = "option", value_name = "ANSWER")]
        options: Vec<String>,
        /// Your task
        #[arg(long)]
        task: Option<String>,
    },
    /// Accept or reject the work that you review
    Verdict {
        /// Your verdict
        verdict: VerdictWord,
        /// Why
        #[arg(default_value = "")]
        summary: String,
        /// What is wrong
        #[arg(long = "finding", value_name = "TEXT")]
        findings: Vec<String>,
        /// The task
        #[arg(long)]
        task: Option<String>,
    },
    /// Give the turn in a channel to the next agent
    EndTurn {
        /// The channel
        channel: String,
        /// The number of the turn
        #[arg(long)]
        turn: Option<u64>,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Needs {
    Decision,
    Access,
    Information,
    Environment,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum VerdictWord {
    Approve,
    Reject,
}

pub(super) fn run(io: &mut Io, args: SignalArgs) -> Result<Outcome, CommandError> {
    let call = args.report.call();
    let caller = of_variables(project::current()?, &Env::of_process(), Via::Receipt);
    if let Some(remote) = Remote::of_environment()? {
        let reply = sent(io, &remote, &caller, &call)?;
        return show(io, args.json, &reply);
    }
    let reply = match notify::open_engine(io.state_dir.as_deref()) {
        Ok(engine) => calls::call(&engine, clock::wall(), &caller, call.clone()),
        Err(error) => calls::unavailable(&error.to_string()),
    };
    let (reply, receipt) = match reply.is_refused_by(RefusalRule::StoreUnavailable) {
        true => written_down(&caller, call, reply)?,
        false => (reply, None),
    };
    if let Some(line) = receipt {
        // The line stands alone: that is what its reader looks for.
        writeln!(io.stdout, "{line}")?;
    }
    show(io, args.json, &reply)
}

/// Says what becomes of a report.
fn show(io: &mut Io, json: bool, reply: &CallReply) -> Result<Outcome, CommandError> {
    let outcome = if reply.accepted { Outcome::Yes } else { Outcome::No };
    if json {
        json::write_line(&mut io.stdout, reply)?;
        return Ok(outcome);
    }
    let out = &mut io.stdout;
    match (&reply.reason, &reply.id) {
        (Some(reason), _) => {
            let rule = reply.rule.as_deref().unwrap_or_default();
            writeln!(out, "Refused: {} ({rule})", display::line(reason))?;
        }
        (None, Some(id)) => writeln!(out, "Accepted as {}", display::line(id))?,
        (None, None) => writeln!(out, "Accepted")?,
    }
    writeln!(out, "  {}", display::line(&reply.next))?;
    if let Some(check) = reply.check.as_ref().filter(|check| !check.output.is_empty()) {
        writeln!(out, "  the check printed:")?;
        for line in check.output.lines() {
            writeln!(out, "    {}", display::line(line))?;
        }
    }
    Ok(outcome)
}

/// Sends a report to the server that keeps the run. Where it does not answer the report waits here.
fn sent(io: &Io, remote: &Remote, caller: &Caller, call: &Call) -> Result<CallReply, CommandError> {
    let state = home::state_directory(io.state_dir.as_deref())?;
    let name = spool::name(clock::now()?)?;
    let body = elsewhere::call(Some(&name), caller, &calls::without_secrets(call));
    let error = match remote.post::<CallReply>(elsewhere::CALLS, &body, CALL_PATIENCE) {
        Ok(reply) => return Ok(reply),
        Err(error) => error,
    };
    // Whose turn it is may be decided long before a report about it arrives.
    let may_wait = error.passes() && !matches!(call, Call::EndTurn { .. });
    if may_wait && spool::put(&state, remote, (elsewhere::CALLS, &body), &name).is_ok() {
        return Ok(CallReply::waits(caller.run.as_deref(), name));
    }
    Ok(calls::unavailable(&error.to_string()))
}

/// Writes a report down in the work tree that the store does not take, or else as a receipt, which is
/// returned.
fn written_down(
    caller: &Caller,
    call: Call,
    refused: CallReply,
) -> Result<(CallReply, Option<String>), CommandError> {
    // Nobody could tell whose it is.
    if caller.run.is_none() && caller.session.is_none() || matches!(call, Call::EndTurn { .. }) {
        return Ok((refused, None));
    }
    let record = CallRecord {
        session: caller.session.clone(),
        agent: caller.agent,
        ..CallRecord::new(clock::wall(), Via::Receipt, calls::without_secrets(&call))?
    };
    let (id, run) = (record.id.clone(), caller.run.clone());
    Ok(match tree_spool::write(&caller.directory, run.clone(), record.clone()) {
        Ok(_) => (CallReply::recorded(run.as_deref(), id), None),
        Err(_) => match receipt::of_this_process(&record, run.clone()) {
            Some(line) => (CallReply::printed(run.as_deref(), id), Some(line)),
            None => (refused, None),
        },
    })
}

impl SignalReport {
    fn call(self) -> Call {
        match self {
            Self::Done { summary, phase, task } => {
                Call::Complete { summary, phase, task, evidence: Vec::new() }
            }
            Self::Blocked { reason, needs, task } => {
                let needs = match needs {
                    Needs::Decision => Need::Decision,
                    Needs::Access => Need::Access,
                    Needs::Information => Need::Information,
                    Needs::Environment => Need::Environment,
                };
                Call::Blocked { reason, needs, tried: None, task }
            }
            Self::Progress { percent, summary, task } => {
                Call::Progress { summary, percent: Some(percent), remaining: None, task }
            }
            Self::Ask { question, options, task } => {
                Call::AskHuman { question, options, default: None, task }
            }
            Self::Verdict { verdict, summary, findings, task } => {
                let verdict = match verdict {
                    VerdictWord::Approve => Judgement::Approve,
                    VerdictWord::Reject => Judgement::Reject,
                };
                let finding = |what| CallFinding { what, path: String::new(), line: None };
                let findings = findings.into_iter().map(finding).collect();
                Call::Verdict { verdict, summary, findings, task }
            }
            Self::EndTurn { channel, turn } => Call::EndTurn { channel, turn },
        }
    }
}
