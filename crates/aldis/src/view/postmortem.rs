//! What people read of a postmortem: the outcome, the sessions that need a look, and where to look.

mod outline;

pub(crate) use self::outline::blocks;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

use aldis_signal::time::Timestamp;

use super::display::{excerpt, line as shown};
use super::paint::Paint;
use super::time::{clock_time, counted, moment, rough};
use super::wire::postmortem::{
    ClaimCounts, ClaimVerdict, Incident, IncidentKind, JudgedClaim, PostmortemLine,
};

/// Something to look at: how bad, the sentence, and the line of the file.
#[derive(Debug)]
pub(crate) struct Remark {
    pub(crate) failure: bool,
    pub(crate) sentence: String,
    pub(crate) line: u64,
}

/// The sessions, and how their files are called here.
#[derive(Debug)]
pub(crate) struct Summary<'s> {
    pub(crate) sessions: &'s [PostmortemLine],
    /// What was looked at, for a sentence: `the last 24 hours`.
    pub(crate) window: String,
    pub(crate) now: Timestamp,
}

impl PostmortemLine {
    /// Returns whether something failed or was not what it was said to be.
    pub(crate) fn has_failure(&self) -> bool {
        self.claim_counts.contradicted > 0 || self.findings.iter().any(|finding| finding.failure)
    }

    /// Returns the name of the project, else of the file.
    pub(crate) fn name(&self) -> String {
        let path = Path::new(self.directory.as_deref().unwrap_or(&self.file));
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let parent = path.parent().and_then(Path::file_name).map(|it| it.to_string_lossy());
        match (name, parent) {
            // The work tree of a task in a delivery has a number, in a folder named after the run.
            (Some(name), Some(parent)) if name.bytes().all(|it| it.is_ascii_digit()) => {
                format!("{parent}/{name}")
            }
            (Some(name), _) => name,
            (None, _) => path.display().to_string(),
        }
    }

    /// Returns what somebody should look at, the worst first.
    pub(crate) fn remarks(&self) -> Vec<Remark> {
        let untrue = self.claims.iter().filter(|claim| claim.verdict == ClaimVerdict::Contradicted);
        let mut remarks: Vec<Remark> = untrue.filter_map(contradicted).collect();
        remarks.extend(self.findings.iter().map(incident));
        remarks
    }

    /// Returns how many more there are of what somebody should look at than are listed.
    pub(crate) fn unlisted(&self) -> u64 {
        let untrue = self.claims.iter().filter(|claim| claim.verdict == ClaimVerdict::Contradicted);
        let listed = untrue.count() as u64;
        self.findings_unlisted + self.claim_counts.contradicted.saturating_sub(listed)
    }

    /// Says what became of the claims, if there were any.
    pub(crate) fn claims_words(&self) -> Option<String> {
        let ClaimCounts { contradicted, unchecked, outdated, confirmed } = self.claim_counts;
        let words = [
            (contradicted, "contradicted by a failed check"),
            (unchecked, "without any check"),
            (outdated, "with files written after the checks"),
            (confirmed, "confirmed by passed checks"),
        ];
        let words = words.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = words.map(|(count, what)| format!("{count} {what}")).collect();
        let total = counted(contradicted + unchecked + outdated + confirmed, "claim");
        (!words.is_empty()).then(|| format!("{total} of done: {}", words.join(", ")))
    }

    /// Returns what it took: time, tools, files, tokens, money.
    pub(crate) fn figures(&self, now: Timestamp) -> Vec<String> {
        let mut figures = vec![self.host.clone()];
        if let Some((began, ended)) = self.began.zip(self.ended) {
            figures.push(format!("{} to {}", moment(now, began), clock_time(ended)));
        }
        if self.waited_seconds >= 60 {
            figures.push(format!("waited {}", span(self.waited_seconds)));
        }
        figures.push(counted(self.tools, "tool"));
        let count = |count: u64, noun: &str| (count > 0).then(|| counted(count, noun));
        figures.extend(count(self.files_written, "file").map(|files| format!("{files} written")));
        figures.extend(count(self.compactions, "compaction"));
        figures.extend((self.retries > 0).then(|| format!("tried again {} times", self.retries)));
        figures.extend((self.tokens > 0).then(|| format!("{} tokens", short(self.tokens))));
        figures.extend(self.dollars.map(dollars));
        figures
    }
}

impl Summary<'_> {
    /// Says in one sentence how it went.
    pub(crate) fn outcome(&self) -> String {
        let all = self.sessions.len() as u64;
        let bad = self.sessions.iter().filter(|line| line.has_failure()).count();
        if bad == 0 {
            return format!("No failures in {} ({}).", counted(all, "session"), self.window);
        }
        let mut parts = Vec::new();
        let untrue: u64 = self.sessions.iter().map(|line| line.claim_counts.contradicted).sum();
        if untrue > 0 {
            let claims = counted(untrue, "claim");
            parts.push(format!("{claims} of done contradicted by a failed check"));
        }
        let failed = |kinds: &[IncidentKind]| {
            let all = self.sessions.iter().flat_map(|line| &line.findings);
            all.filter(|found| found.failure && kinds.contains(&found.kind)).count() as u64
        };
        for (kinds, noun, what) in [
            (&[IncidentKind::Limit][..], "session", "stopped at a limit"),
            (&[IncidentKind::Error], "session", "stopped by an error"),
            (&[IncidentKind::FailingCheck], "session", "ended with a failing check"),
        ] {
            let count = failed(kinds);
            parts.extend((count > 0).then(|| format!("{} {what}", counted(count, noun))));
        }
        let have = if bad == 1 { "has" } else { "have" };
        let window = &self.window;
        format!(
            "{bad} of {} {have} failures ({window}): {}.",
            counted(all, "session"),
            parts.join(", ")
        )
    }

    /// Says what all of them took.
    pub(crate) fn totals(&self) -> String {
        let mut hosts = BTreeMap::<&str, u64>::new();
        for line in self.sessions {
            *hosts.entry(&line.host).or_default() += 1;
        }
        let hosts: Vec<String> =
            hosts.into_iter().map(|(host, count)| format!("{count} of {host}")).collect();
        let sum = |of: fn(&PostmortemLine) -> u64| self.sessions.iter().map(of).sum::<u64>();
        let mut parts = vec![format!("Sessions: {}", hosts.join(", "))];
        let waited = sum(|line| line.waited_seconds);
        if waited >= 60 {
            parts.push(format!("{} of waiting for people and limits", span(waited)));
        }
        parts.push(counted(sum(|line| line.tools), "tool"));
        parts.push(format!("{} tokens", short(sum(|line| line.tokens))));
        let priced: Vec<f64> = self.sessions.iter().filter_map(|line| line.dollars).collect();
        if !priced.is_empty() {
            let of = match self.sessions.len() - priced.len() {
                0 => String::new(),
                others => {
                    format!(" (the host names no price for {})", counted(others as u64, "session"))
                }
            };
            parts.push(format!("{}{of}", dollars(priced.iter().sum())));
        }
        format!("{}.", parts.join(", "))
    }

    /// Writes it for a terminal.
    pub(crate) fn write(&self, out: &mut dyn Write, paint: Paint) -> io::Result<()> {
        writeln!(out, "{}", paint.strong(shown(&self.outcome())))?;
        writeln!(out, "{}", shown(&self.totals()))?;
        let (noted, quiet): (Vec<_>, Vec<_>) =
            self.sessions.iter().partition(|line| !line.remarks().is_empty());
        for line in noted {
            writeln!(out)?;
            self.write_session(out, paint, line)?;
        }
        if !quiet.is_empty() {
            writeln!(out, "\nNothing to look at:")?;
        }
        for line in quiet.iter().take(QUIET_MAX) {
            let mut parts = line.figures(self.now);
            parts.extend(line.claims_words());
            let (name, parts) = (shown(&line.name()), shown(&parts.join(" · ")));
            writeln!(out, "  {}  {}", paint.strong(name), paint.dim(parts))?;
        }
        if quiet.len() > QUIET_MAX {
            writeln!(out, "  and {} more; --json lists them all", quiet.len() - QUIET_MAX)?;
        }
        Ok(())
    }

    fn write_session(
        &self,
        out: &mut dyn Write,
        paint: Paint,
        line: &PostmortemLine,
    ) -> io::Result<()> {
        let (name, figures) = (shown(&line.name()), shown(&line.figures(self.now).join(" · ")));
        writeln!(out, "{}  {}", paint.strong(name), paint.dim(figures))?;
        if let Some(asked) = &line.asked {
            writeln!(out, "  \"{}\"", excerpt(asked, WORDS_MAX))?;
        }
        if let Some(claims) = line.claims_words() {
            writeln!(out, "  {claims}")?;
        }
        let remarks = line.remarks();
        for Remark { failure, sentence, line: at } in remarks.iter().take(REMARKS_MAX) {
            let sign = if *failure { paint.bad("✗") } else { paint.warn("!") };
            writeln!(out, "  {sign} {}", shown(sentence))?;
            writeln!(out, "      {}", paint.place(format_args!("{}:{at}", shown(&line.file))))?;
        }
        let more = remarks.len().saturating_sub(REMARKS_MAX) as u64 + line.unlisted();
        if more > 0 {
            writeln!(out, "  and {more} more; --html and --json list them")?;
        }
        Ok(())
    }
}

/// A claim that a check says is not true.
fn contradicted(claim: &JudgedClaim) -> Option<Remark> {
    let check = claim.check.as_ref()?;
    let before = claim
        .at
        .zip(check.at)
        .map(|(claim, check)| format!(" {} before", rough(claim.since(check))));
    let since =
        if check.outdated { "; files were written since, and it was not run again" } else { "" };
    let sentence = format!(
        "Claimed done ({}), but `{}` had failed{}{} (line {}){since}",
        excerpt(&claim.words, CLAIM_MAX),
        excerpt(&check.command, COMMAND_MAX),
        before.unwrap_or_default(),
        check.exit.map(|code| format!(" with exit code {code}")).unwrap_or_default(),
        check.line,
    );
    Some(Remark { failure: true, sentence, line: claim.line })
}

/// Says what happened.
fn incident(incident: &Incident) -> Remark {
    let Incident { kind, failure, line, at, .. } = *incident;
    let what = excerpt(&incident.what, COMMAND_MAX);
    let at = at.map(|at| format!(" at {}", clock_time(at))).unwrap_or_default();
    let waited = incident.seconds.map(span).unwrap_or_default();
    let colon = if what.is_empty() { String::new() } else { format!(": {what}") };
    let sentence = match kind {
        IncidentKind::Error => format!("Stopped by an error{at}, nothing after it{colon}"),
        IncidentKind::Limit if failure => {
            let until = incident.until.map(|until| format!(" (over at {})", clock_time(until)));
            format!("Stopped at a limit{at}, nothing after it{colon}{}", until.unwrap_or_default())
        }
        IncidentKind::Limit => format!("Waited {waited} for a limit to end{colon}"),
        IncidentKind::FailingCheck => {
            let code = incident.exit.map(|code| format!(" with exit code {code}"));
            format!("Ended after `{what}` had failed{}{at}", code.unwrap_or_default())
        }
        IncidentKind::Unanswered => {
            format!(
                "Ended in the middle of a call{at}: {what}. It waited for a permission or was cut off"
            )
        }
        IncidentKind::Interrupted => format!("Interrupted by a person{at}, nothing after it"),
        IncidentKind::Denied => {
            let times = match incident.count {
                1 => String::new(),
                count => format!(" {count} times"),
            };
            let waited = incident.seconds.map(|_| format!(" after {waited}"));
            format!("Permission denied{times}{}{colon}", waited.unwrap_or_default())
        }
        IncidentKind::PermissionWait => format!("Waited {waited} for a permission{colon}"),
        IncidentKind::QuestionWait => format!("Waited {waited} for an answer{colon}"),
        IncidentKind::LongCall => {
            format!("No result for {waited}{colon}. It ran, or it waited for a permission")
        }
    };
    Remark { failure, sentence, line }
}

fn span(seconds: u64) -> String {
    rough(Duration::from_secs(seconds))
}

fn dollars(dollars: f64) -> String {
    format!("${dollars:.2}")
}

/// A large number, rounded: `1.2 M`.
fn short(count: u64) -> String {
    match count {
        0..1_000 => count.to_string(),
        1_000..1_000_000 => format!("{:.1} k", count as f64 / 1e3),
        _ => format!("{:.1} M", count as f64 / 1e6),
    }
}

/// How many sessions are listed of which there is nothing to tell.
const QUIET_MAX: usize = 20;
/// How many remarks are written of one session.
const REMARKS_MAX: usize = 8;
/// How much of a prompt is shown.
const WORDS_MAX: usize = 100;
/// How much of a command or of an error.
const COMMAND_MAX: usize = 120;
/// How much of a claim.
const CLAIM_MAX: usize = 60;
