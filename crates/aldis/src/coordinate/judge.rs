//! A second opinion about a claim whose checks passed: any program that reads a question and answers it.
//!
//! It can refuse and never accepts alone. One that fails, takes too long or answers nonsense counts for
//! nothing, and that is recorded.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aldis_machine::proof::{Check, CheckResult, CheckStatus, Opinion, OpinionVerdict, Proof};
use aldis_signal::redact::redact;
use aldis_signal::time::Timestamp;
use aldis_store::RunId;
use aldis_transcript::activity::{Fact, ToolEnd, ToolUse};
use aldis_transcript::events::Zone;
use aldis_transcript::{Format, Output, Reader, detect};

use crate::agents::command::{JobLaunch, Program, StartFailure};
use crate::agents::output_log::LoggedAgent;
use crate::proof::checks::{self, AttendedProcess};
use crate::proof::record::Recorder;
use crate::receipts::{judged_changes, judged_checks};
use crate::view::wire::judge::{JudgeAnswer, JudgeQuestion, JudgeWord, JudgedCheck, JudgedTool};

/// How long a judge may take.
pub(super) const JUDGE_MAX: Duration = Duration::from_secs(5 * 60);
/// How many of an agent's logs are read: each may be large.
const LOGS_MAX: usize = 2;
/// How many tools it is told of, and how much they printed altogether.
const TOOLS_MAX: usize = 100;
const TOOLS_BYTES_MAX: usize = 64 * 1024;
/// How much of the task, and of what one tool was about.
const TASK_MAX: usize = 16_000;
const WHAT_MAX: usize = 2_000;
/// How much of a transcript is read at once; also what tells the format.
const PIECE: usize = 256 * 1024;

/// What a claim is about, as its machine knows it.
pub(crate) struct JudgeSubject<'a> {
    /// What was asked of the agent.
    pub(crate) task: &'a str,
    /// What it claims, as a clause.
    pub(crate) claim: String,
    /// What the checks said.
    pub(crate) proof: &'a Proof,
    /// What the agent's host wrote about its work, oldest first.
    pub(crate) transcripts: Vec<PathBuf>,
}

/// What the logs of an agent hold, oldest first; not more than a judge is told of.
pub(super) fn logs(state: &Path, run: &RunId, agent: &LoggedAgent) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = agent.files(state, run).take(LOGS_MAX).collect();
    files.reverse();
    files
}

/// Puts the question together, and says how it is asked at this place.
pub(crate) fn launch(
    command: &str,
    (run, place): (&RunId, &Path),
    subject: &JudgeSubject<'_>,
) -> Result<JobLaunch, StartFailure> {
    let round = subject.proof.round();
    let outputs = round.into_iter().flat_map(|round| &round.results);
    let outputs = outputs.map(|result| redact(&result.output.tail).into_owned());
    let checks = judged_checks(subject.proof).into_iter().zip(outputs);
    let question = JudgeQuestion {
        v: 1,
        kind: "judge".to_owned(),
        run: run.to_string(),
        task: end(&redact(subject.task), TASK_MAX),
        claim: subject.claim.clone(),
        project: place.display().to_string(),
        commit: round.and_then(|round| round.claim.commit.clone()),
        checks: checks.map(|(check, output)| JudgedCheck { check, output }).collect(),
        changes: judged_changes(subject.proof),
        tool_results: tools(&subject.transcripts),
    };
    let unwritable = |error: serde_json::Error| StartFailure { what: error.to_string() };
    let question = serde_json::to_vec(&question).map_err(unwritable)?;
    Ok(JobLaunch {
        what: Program::Judge { command: command.to_owned(), question },
        directory: place.to_owned(),
        variables: Vec::new(),
        run: run.clone(),
        worker: None,
    })
}

/// Asks, and waits for the answer.
pub(crate) fn ask(command: &str, place: (&RunId, &Path), subject: &JudgeSubject<'_>) -> Opinion {
    let mut recorder = Recorder::new(Check::unnamed(command));
    let attended = launch(command, place, subject)
        .and_then(|launch| checks::attend(&launch, &mut recorder, JUDGE_MAX));
    match attended {
        Ok(AttendedProcess { exit, timed_out, took_ms }) => {
            opinion(recorder, |recorder| recorder.finish(exit, timed_out, took_ms, None))
        }
        Err(failed) => opinion(recorder, |recorder| recorder.not_started(&failed.what)),
    }
}

/// What a judge said that has ended.
pub(super) fn opinion(recorder: Recorder, finish: impl FnOnce(Recorder) -> CheckResult) -> Opinion {
    let answer = recorder.answer().to_vec();
    let ended = finish(recorder);
    let none = |what: String| Opinion::new(&ended.command, OpinionVerdict::None, &what);
    match ended.status {
        CheckStatus::Passed => {}
        CheckStatus::TimedOut => {
            return none(format!("it did not answer within {} minutes", JUDGE_MAX.as_secs() / 60));
        }
        _ => return none(format!("it {}: {}", ended.clause(), ended.output.tail.trim())),
    }
    match serde_json::from_slice::<JudgeAnswer>(&answer) {
        Ok(JudgeAnswer { verdict, reason, cost_usd }) => {
            let verdict = match verdict {
                JudgeWord::Accept => OpinionVerdict::Accept,
                JudgeWord::Refuse => OpinionVerdict::Refuse,
            };
            let opinion = Opinion::new(&ended.command, verdict, &redact(&reason));
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

/// The last tools of the main conversation, as its transcripts tell.
fn tools(transcripts: &[PathBuf]) -> Vec<JudgedTool> {
    let (mut tools, mut bytes) = (VecDeque::new(), 0);
    // What cannot be read is left out: the checks have the last word.
    let _read = read(transcripts, &mut |tool| {
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

fn read(transcripts: &[PathBuf], each: &mut dyn FnMut(&ToolUse)) -> std::io::Result<()> {
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
    for transcript in transcripts.iter().filter(|it| it.exists()) {
        let mut file = File::open(transcript)?;
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
