//! A report as blocks: what is said, in which order.

use std::time::Duration;

use aldis_machine::run::Usage;

use crate::view::page::{Block, PageMark};
use crate::view::show;
use crate::view::time::{clock_time, counted, elapsed, local, localized, rough};
use crate::view::timeline::Timeline;
use crate::view::wire::report::{ClaimFate, ReportAgent, ReportClaim, ReportForm};

/// What stands between the lines of a quoted signal.
const DETAILS: &str = " · ";

/// Puts a report in order.
pub(crate) fn outline<'f>(form: &'f ReportForm, timeline: &'f Timeline) -> Vec<Block<'f>> {
    let mark = match (form.active, &*form.tone) {
        (true, _) => PageMark::Active,
        (false, "good") => PageMark::Good,
        (false, _) => PageMark::Bad,
    };
    let (title, outcome) = ((&*form.title).into(), (&*form.outcome).into());
    let mut blocks = vec![Block::Title { title, outcome, mark }, Block::Facts(facts(form))];
    if form.asked.trim() != form.title.trim() {
        blocks.extend([Block::Heading("What was asked".into()), Block::Quote(&form.asked)]);
    }
    blocks.extend([Block::Heading("Timeline".into()), Block::Picture(timeline)]);
    claims(form, &mut blocks);
    tasks(form, &mut blocks);
    questions_and_waits(form, &mut blocks);
    agents(form, &mut blocks);
    changes(form, &mut blocks);
    if !form.decisions.is_empty() {
        let rows = form.decisions.iter().map(|form| {
            let task = form.task.as_deref().map(|task| format!("{task}: ")).unwrap_or_default();
            let said = |sentence: &str| localized(form.at, sentence);
            let summary = format!("{task}{}", said(&form.summary));
            vec![clock_time(form.at), summary, said(&form.because), form.rule.clone()]
        });
        let head = &["When", "What", "Why", "Rule"];
        blocks.push(Block::Heading("Decisions that matter".into()));
        blocks.push(Block::Table { head, rows: rows.collect() });
    }
    blocks
}

fn facts(form: &ReportForm) -> Vec<(&'static str, String)> {
    let span = |seconds| rough(Duration::from_secs(seconds));
    let lasted = elapsed(form.ended.since(form.began));
    let mut facts = vec![
        ("Run", format!("{} ({}) in {}", form.run, form.machine, show::project(&form.project))),
        ("When", format!("{} to {} ({lasted})", local(form.began), clock_time(form.ended))),
        ("Worked", span(form.worked_seconds)),
    ];
    if form.waited_seconds > 0 {
        facts.push(("Waited", span(form.waited_seconds)));
    }
    let cost = Usage { tokens: form.tokens, micro_dollars: form.micro_dollars };
    // A host that reports no price did not work for nothing.
    let tokens = (form.tokens > 0).then(|| format!("{} tokens", form.tokens));
    let price = (form.micro_dollars > 0).then(|| show::dollars(cost));
    if price.is_some() || tokens.is_some() {
        let parts: Vec<String> = price.into_iter().chain(tokens).collect();
        facts.push(("Cost", parts.join(", ")));
    }
    facts.extend(form.iterations.map(|count| ("Iterations", count.to_string())));
    let count = |fate| form.claims.iter().filter(|claim| claim.fate == fate).count();
    if !form.claims.is_empty() {
        let (held, refused) = (count(ClaimFate::Held), count(ClaimFate::Refused));
        let claims = counted(u64::try_from(form.claims.len()).unwrap_or(u64::MAX), "claim");
        facts.push(("Claims", format!("{claims}: {held} held, {refused} did not")));
    }
    if form.receipts > 0 {
        let receipts = counted(form.receipts, "receipt");
        facts.push(("Proof", format!("{receipts}: aldis proof show {}", form.run)));
    }
    facts.extend(form.refused.clone().map(|refused| ("Refused", refused)));
    facts.extend(form.next.clone().map(|next| ("Next", next)));
    facts
}

fn claims<'f>(form: &'f ReportForm, blocks: &mut Vec<Block<'f>>) {
    if form.claims.is_empty() {
        return;
    }
    let fate = |claim: &ReportClaim| match claim.fate {
        ClaimFate::Held => "held",
        ClaimFate::Refused => "did not hold",
        ClaimFate::Open => "not judged",
    };
    let rows = form.claims.iter().map(|claim| {
        let task = claim.task.as_deref().map(|task| format!("{task}: ")).unwrap_or_default();
        let by = if claim.via == "said" { String::new() } else { format!(" (by {})", claim.via) };
        let because = if claim.because.is_empty() { "" } else { ": " };
        let fate = format!("{}{because}{}", fate(claim), claim.because);
        // The first line is the claim, what follows its details.
        let quote = claim.quote.split(DETAILS).next().unwrap_or_default();
        vec![clock_time(claim.at), format!("{task}{quote}{by}"), fate]
    });
    blocks.push(Block::Heading("Claims, and what became of them".into()));
    let head = &["When", "Claim", "What became of it"];
    blocks.push(Block::Table { head, rows: rows.collect() });
    // The last check that failed says what is left to do.
    let failed = form.claims.iter().rfind(|claim| claim.fate == ClaimFate::Refused);
    let output = failed.and_then(|claim| claim.output.as_deref());
    if let Some(output) = output.filter(|output| !output.trim().is_empty()) {
        blocks.extend([Block::Heading("The last failed check".into()), Block::Output(output)]);
    }
}

fn tasks<'f>(form: &'f ReportForm, blocks: &mut Vec<Block<'f>>) {
    if !form.tasks.is_empty() {
        let rows = form.tasks.iter().map(|task| {
            let why = task.setback.clone().unwrap_or_default();
            vec![
                task.title.clone(),
                task.task.clone(),
                show::task_words(&task.status).to_owned(),
                task.round.to_string(),
                why,
            ]
        });
        let head = &["Task", "Id", "State", "Rounds", "Last failure"];
        blocks.push(Block::Heading("Tasks".into()));
        blocks.push(Block::Table { head, rows: rows.collect() });
    }
}

fn questions_and_waits<'f>(form: &'f ReportForm, blocks: &mut Vec<Block<'f>>) {
    if !form.questions.is_empty() {
        let rows = form.questions.iter().map(|question| {
            let answer = match (&question.answer, question.answered, &question.id) {
                (Some(answer), ..) => answer.clone(),
                (None, Some(at), _) => format!("answered at {}", clock_time(at)),
                (None, None, Some(id)) => format!("open: aldis answer {id} TEXT"),
                (None, None, None) => "never answered".to_owned(),
            };
            vec![clock_time(question.at), question.text.clone(), answer]
        });
        blocks.push(Block::Heading("Questions".into()));
        blocks.push(Block::Table { head: &["When", "Question", "Answer"], rows: rows.collect() });
    }
    if !form.waits.is_empty() {
        let rows = form.waits.iter().map(|wait| {
            let task = wait.task.as_deref().map(|task| format!("{task}: ")).unwrap_or_default();
            let span = elapsed(wait.until.since(wait.from));
            vec![clock_time(wait.from), span, format!("{task}{}", localized(wait.from, &wait.what))]
        });
        blocks.push(Block::Heading("Waits".into()));
        blocks.push(Block::Table { head: &["From", "For", "What"], rows: rows.collect() });
    }
}

fn agents<'f>(form: &'f ReportForm, blocks: &mut Vec<Block<'f>>) {
    if form.agents.is_empty() {
        return;
    }
    let rows = form.agents.iter().map(|agent| {
        let tools = agent.tools.iter().map(|(name, count)| format!("{name} {count}"));
        let failed = (agent.failed > 0).then(|| format!("{} failed", agent.failed));
        let tools: Vec<String> = tools.chain(failed).collect();
        let none = || "none that its host reports".to_owned();
        vec![agent_name(agent), if tools.is_empty() { none() } else { tools.join(", ") }]
    });
    blocks.push(Block::Heading("Agents and their tools".into()));
    blocks.push(Block::Table { head: &["Agent", "Tools"], rows: rows.collect() });
    if let Some(words) = form.agents.iter().rev().find_map(|agent| agent.last_words.as_deref()) {
        blocks.extend([Block::Heading("The last words of an agent".into()), Block::Quote(words)]);
    }
}

fn agent_name(agent: &ReportAgent) -> String {
    match (&agent.role, &agent.task, agent.agent) {
        (Some(role), Some(task), _) => format!("{role} of {task}"),
        (Some(role), None, _) => role.clone(),
        (None, _, Some(number)) => format!("agent {number}"),
        (None, _, None) => "the agent".to_owned(),
    }
}

fn changes<'f>(form: &'f ReportForm, blocks: &mut Vec<Block<'f>>) {
    if !form.commits.is_empty() {
        let rows = form.commits.iter();
        let rows = rows.map(|it| vec![it.id.clone(), clock_time(it.at), it.subject.clone()]);
        blocks.push(Block::Heading("Commits".into()));
        blocks.push(Block::Table { head: &["Commit", "When", "What"], rows: rows.collect() });
    }
    if !form.files.is_empty() {
        let count =
            |lines: Option<u64>| lines.map_or_else(|| "-".to_owned(), |lines| lines.to_string());
        let rows = form.files.iter();
        let rows = rows.map(|it| vec![it.path.clone(), count(it.added), count(it.removed)]);
        blocks.push(Block::Heading("Files".into()));
        blocks.push(Block::Table { head: &["File", "Added", "Removed"], rows: rows.collect() });
    }
}
