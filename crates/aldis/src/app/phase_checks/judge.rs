//! A second opinion about a claim whose checks passed: any program that reads a question and answers it.
//!
//! It can refuse and never accepts alone. One that fails, takes too long or answers nonsense counts for
//! nothing, and that is recorded.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use aldis_machine::phases::{CheckedClaim, State};
use aldis_machine::proof::{Opinion, OpinionVerdict, Proof};
use aldis_process::{BoundedError, run_bounded_with_input};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_transcript::activity::{Fact, ToolEnd, ToolUse};
use aldis_transcript::events::Zone;
use aldis_transcript::{Format, Output, Reader, detect};

use crate::receipts::{judged_changes, judged_checks};
use crate::view::wire::judge::{JudgeAnswer, JudgeQuestion, JudgeWord, JudgedCheck, JudgedTool};

/// How long a judge may take.
const JUDGE_MAX: Duration = Duration::from_secs(5 * 60);
/// How much of its answer is read.
const ANSWER_MAX: usize = 64 * 1024;
/// How many tools it is told of, and how much they printed altogether.
const TOOLS_MAX: usize = 100;
const TOOLS_BYTES_MAX: usize = 64 * 1024;
/// How much of the task, and of what one tool was about.
const TASK_MAX: usize = 16_000;
const WHAT_MAX: usize = 2_000;
/// How much of a transcript is read at once; also what tells the format.
const PIECE: usize = 256 * 1024;

/// Puts the question together.
pub(super) fn question(
    (run, state, project): (&str, &State, &Path),
    claim: &CheckedClaim,
    proof: &Proof,
    transcript: Option<&Path>,
) -> JudgeQuestion {
    let round = proof.round();
    let outputs = round.into_iter().flat_map(|round| &round.results);
    let outputs = outputs.map(|result| redact(&result.output.tail).into_owned());
    let checks = judged_checks(proof).into_iter().zip(outputs);
    JudgeQuestion {
        v: 1,
        kind: "judge".to_owned(),
        run: run.to_owned(),
        task: end(&redact(state.task()), TASK_MAX),
        claim: claim.clause(),
        project: project.display().to_string(),
        commit: round.and_then(|round| round.claim.commit.clone()),
        checks: checks.map(|(check, output)| JudgedCheck { check, output }).collect(),
        changes: judged_changes(proof),
        tool_results: transcript.map(tools).unwrap_or_default(),
    }
}

/// Asks the judge.
pub(super) fn ask(command: &str, project: &Path, question: &JudgeQuestion) -> Opinion {
    let none = |what: String| Opinion::new(command, OpinionVerdict::None, &what);
    let Ok(input) = serde_json::to_vec(question) else {
        return none("the question could not be written".to_owned());
    };
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).current_dir(project);
    let answered = match run_bounded_with_input(shell, input, JUDGE_MAX, ANSWER_MAX) {
        Ok(answered) => answered,
        Err(BoundedError::TimedOut { .. }) => {
            return none(format!("it did not answer within {} minutes", JUDGE_MAX.as_secs() / 60));
        }
        Err(error) => return none(error.to_string()),
    };
    if !answered.status.success() {
        let said = String::from_utf8_lossy(&answered.stderr);
        return none(format!("it failed ({}): {}", answered.status, redact(said.trim())));
    }
    match serde_json::from_slice::<JudgeAnswer>(&answered.stdout) {
        Ok(JudgeAnswer { verdict, reason, cost_usd }) => {
            let verdict = match verdict {
                JudgeWord::Accept => OpinionVerdict::Accept,
                JudgeWord::Refuse => OpinionVerdict::Refuse,
            };
            let opinion = Opinion::new(command, verdict, &redact(&reason));
            Opinion { micro_dollars: cost_usd.and_then(micro), ..opinion }
        }
        Err(error) => none(format!("its answer is none: {error}")),
    }
}

/// Dollars in millionths, if they make sense.
fn micro(dollars: f64) -> Option<u64> {
    let micro = (dollars * 1e6).round();
    (0.0..1e15).contains(&micro).then_some(micro as u64)
}

/// The last tools of the main conversation, as its transcript tells.
fn tools(transcript: &Path) -> Vec<JudgedTool> {
    let (mut tools, mut bytes) = (VecDeque::new(), 0);
    // What cannot be read is left out: the checks have the last word.
    let _read = read(transcript, &mut |tool| {
        let tool = judged(tool);
        bytes += tool.output.len() + tool.what.len();
        tools.push_back(tool);
        while tools.len() > TOOLS_MAX || bytes > TOOLS_BYTES_MAX {
            let Some(oldest) = tools.pop_front() else { break };
            bytes -= oldest.output.len() + oldest.what.len();
        }
    });
    tools.into()
}

fn read(transcript: &Path, each: &mut dyn FnMut(&ToolUse)) -> std::io::Result<()> {
    let mut file = File::open(transcript)?;
    let mut piece = vec![0; PIECE];
    let nothing_matters = |_: &[u8]| false;
    let mut reader: Option<Reader<'_>> = None;
    let mut take = |output: Output| {
        if let Output::Activity(activity) = output
            && let (Fact::Tool(tool), false) = (&activity.fact, activity.sidechain)
        {
            each(tool);
        }
    };
    loop {
        let length = file.read(&mut piece)?;
        let bytes = piece.get(..length).unwrap_or_default();
        if length == 0 {
            break;
        }
        if reader.is_none() {
            let format = detect(bytes);
            if format == Format::Text {
                return Ok(());
            }
            let new = Reader::new(format).with_filter(&nothing_matters).signals_only();
            reader = Some(new.with_activities(Zone::utc()));
        }
        if let Some(reader) = &mut reader {
            reader.push_live(bytes, NO_TIME, &mut take);
        }
    }
    if let Some(reader) = reader {
        reader.finish_live(NO_TIME, &mut take);
    }
    Ok(())
}

fn judged(tool: &ToolUse) -> JudgedTool {
    JudgedTool {
        tool: tool.name.clone(),
        what: end(&redact(&tool.what), WHAT_MAX),
        failed: matches!(tool.end, ToolEnd::Failed | ToolEnd::Refused),
        exit_code: tool.exit,
        output: redact(&tool.output).into_owned(),
    }
}

/// The end of a text.
fn end(text: &str, most: usize) -> String {
    match text.char_indices().rev().nth(most) {
        Some((at, _)) => format!("…{}", text.get(at..).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// The time matters only to what hosts report about limits.
const NO_TIME: Timestamp = Timestamp::from_millis(0);
