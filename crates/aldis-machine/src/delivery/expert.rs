//! Experts: asked by another agent, answering it, and created by the planner.

use super::event::{Effect, Notice, Severity};
use super::human::NewQuestion;
use super::judge::Accepted;
use super::locks;
use super::rule::Rule;
use super::run::{Consultation, ExpertCandidate, Stage, Work};
use super::signal::{Role, SignalKind};
use super::state::State;
use super::task::{PromptNote, Wait, remember};
use crate::words::{counted, cut};

/// How many experts there may be.
const EXPERTS_MAX: usize = 100;
/// How much of an expert's question and of its expertise is kept.
const PROMPT_MAX: usize = 20_000;
const EXPERTISE_MAX: usize = 2_000;

impl State {
    /// An agent needs an expert.
    pub(super) fn consult(&mut self, (task, role): (Option<usize>, Role), accepted: Accepted<'_>) {
        let signal = accepted.signal;
        let wanted = signal.field("target_agent");
        let known =
            self.run.experts.known.keys().find(|name| name.eq_ignore_ascii_case(wanted.trim()));
        let Some(expert) = known.cloned() else {
            let names: Vec<&str> = self.run.experts.known.keys().map(String::as_str).collect();
            let why = match &*names {
                [] => "there are no experts".to_owned(),
                names => format!("there is no such expert; ask one of: {}", names.join(", ")),
            };
            return match task {
                Some(no) => self.refuse_signal(no, accepted, "unknown_expert", why),
                None => {
                    self.note_repair("Your request for an expert was refused:", &why);
                    let why =
                        format!("the {} asked for an expert that does not exist", role.label());
                    self.next_repair(&why, vec![accepted.evidence()]);
                }
            };
        };
        self.run.experts.consultations_started += 1;
        let id = format!("req-{}", self.run.experts.consultations_started);
        let consultation = Consultation {
            expert: expert.clone(),
            task,
            role,
            kind: cut(signal.field("request_type").trim(), EXPERTISE_MAX).to_owned(),
            snapshot: cut(signal.field("context_snapshot").trim(), EXPERTISE_MAX).to_owned(),
            prompt: cut(signal.field("delegation_prompt").trim(), PROMPT_MAX).to_owned(),
            tries: 0,
            notes: Vec::new(),
        };
        self.run.experts.consultations.insert(id.clone(), consultation);
        if let Some(no) = task {
            self.at_mut(no).hands.resume = Some(accepted.agent);
            self.set_wait(no, Wait::Expert { request: id.clone() });
        }
        self.decide(task, Rule::ExpertAsked, format!("Asked the expert {expert}"))
            .because(format!("the {} wants its advice", role.label()))
            .seen([accepted.evidence()])
            .next(format!("the {} continues with the answer to {id}", role.label()));
        self.dispatch(Role::Expert, Work::Request { request: id });
    }

    /// A signal of an expert counts.
    pub(super) fn apply_expert(&mut self, id: &str, accepted: Accepted<'_>) {
        match accepted.kind {
            SignalKind::ExpertAdvice => self.pass_advice_on(id, accepted),
            SignalKind::ExpertUnsuccessful => {
                let new = |expert: &str| {
                    let because = format!("the expert {expert} has no answer");
                    NewQuestion::new(Rule::ExpertUnsuccessful, because).seen([accepted.evidence()])
                };
                self.escalate(id, new, &accepted.signal.body());
            }
            SignalKind::FileConflict => self.expert_failed(id, "an expert changes no files"),
            // Reported by no expert.
            _ => {}
        }
    }

    fn pass_advice_on(&mut self, id: &str, accepted: Accepted<'_>) {
        let Some(asked) = self.run.experts.consultations.remove(id) else { return };
        let about = format!("You asked the expert {}. Its advice:", asked.expert);
        let advice = accepted.signal.body();
        let summary = format!("Passed on the advice of the expert {}", asked.expert);
        self.decide(asked.task, Rule::ExpertAdvised, summary)
            .because(format!("it answered {id}"))
            .seen([accepted.evidence()])
            .next(format!("the {} continues with it", asked.role.label()));
        match asked.task {
            Some(no) => {
                self.at_mut(no).note(about, &advice);
                self.set_wait(no, Wait::Slot);
            }
            None => {
                self.note_repair(&about, &advice);
                self.dispatch(asked.role, Work::Infrastructure);
            }
        }
    }

    /// An expert gave no answer: it tries again, or a human is asked.
    pub(super) fn expert_failed(&mut self, id: &str, why: &str) {
        let most = self.run.config.expert_tries;
        let Some(asked) = self.run.experts.consultations.get_mut(id) else { return };
        if asked.tries >= most {
            let tries = counted(asked.tries, "attempt");
            let new = |expert: &str| {
                let because = format!("{tries} of the expert {expert} failed. Last: {why}");
                NewQuestion::new(Rule::ExpertTriesUsedUp, because)
            };
            return self.escalate(id, new, "");
        }
        let note = format!("Your last attempt gave no answer: {why}.");
        remember(&mut asked.notes, PromptNote::new(note, ""));
        let (expert, tries, task) = (asked.expert.clone(), asked.tries, asked.task);
        let summary =
            format!("Asked the expert {expert} again after {}", counted(tries, "attempt"));
        self.decide(task, Rule::ExpertRetried, summary)
            .because(why)
            .next(format!("after {} a human is asked", counted(most, "attempt")));
        self.dispatch(Role::Expert, Work::Request { request: id.to_owned() });
    }

    /// No expert has the answer: a human must give it.
    fn escalate(&mut self, id: &str, new: impl FnOnce(&str) -> NewQuestion, report: &str) {
        let Some(asked) = self.run.experts.consultations.remove(id) else { return };
        let new = new(&asked.expert)
            .asking(asked.prompt.lines().next().unwrap_or_default())
            .knowing(format!(
                "The {} asked the expert {}:\n{}\n\n{}",
                asked.role.label(),
                asked.expert,
                asked.prompt,
                match report.trim() {
                    "" => "The expert gave no answer.".to_owned(),
                    report => format!("The expert reported:\n{report}"),
                }
            ));
        self.ask_for(asked.task, asked.role, new);
    }

    /// The planner is done: the experts it created are registered once their files are there. The work
    /// waits for that, so that its first agents know them.
    pub(super) fn planned<'s>(&mut self, reported: impl Iterator<Item = Accepted<'s>>) {
        for accepted in reported.filter(|it| it.kind == SignalKind::ExpertCreated) {
            let signal = accepted.signal;
            let name = signal.subject.clone().unwrap_or_default();
            let full =
                self.run.experts.known.len() + self.run.experts.candidates.len() >= EXPERTS_MAX;
            let file = locks::normal(&signal.field("file"));
            let Some(file) = file.filter(|_| !full) else {
                let because = if full {
                    format!("there are {EXPERTS_MAX} experts already, the most there may be")
                } else {
                    "it names no file inside the project".to_owned()
                };
                self.leave_expert_out(&name, &because, Some(accepted));
                continue;
            };
            let expertise =
                cut(signal.first_field(&["gap_filled", "expertise_encoded"]).trim(), EXPERTISE_MAX)
                    .to_owned();
            let candidate = ExpertCandidate { file: file.clone(), expertise };
            self.run.experts.candidates.insert(name.clone(), candidate);
            self.decide(None, Rule::ExpertCreated, format!("Looking for the file of {name}"))
                .because("the planner created this expert")
                .seen([accepted.evidence()])
                .next(format!("agents can ask it if {file} is there"));
            self.out.effects.push(Effect::CheckExpert { name, file });
        }
        if self.run.experts.candidates.is_empty() {
            self.plan_is_over();
        } else {
            self.run.stage = Stage::CheckingExperts;
            self.run.experts.checking_since = Some(self.out.now);
        }
    }

    /// Whether an expert's file is there is known.
    pub(super) fn expert_checked(&mut self, name: &str, present: bool) {
        let Some(ExpertCandidate { file, expertise }) = self.run.experts.candidates.remove(name)
        else {
            return;
        };
        if present {
            self.run.experts.known.insert(name.to_owned(), expertise);
            self.decide(None, Rule::ExpertRegistered, format!("Registered the expert {name}"))
                .because(format!("{file} is there"))
                .next("agents can ask it");
        } else {
            self.leave_expert_out(name, &format!("{file} is missing"), None);
        }
        if self.run.experts.candidates.is_empty() && self.run.stage == Stage::CheckingExperts {
            self.plan_is_over();
        }
    }

    /// Nobody said in time whether the files are there: the work starts without those experts.
    pub(super) fn expert_checks_overdue(&mut self) {
        for (name, candidate) in std::mem::take(&mut self.run.experts.candidates) {
            let because = format!("nobody reported in time whether {} is there", candidate.file);
            self.leave_expert_out(&name, &because, None);
        }
        self.plan_is_over();
    }

    fn leave_expert_out(&mut self, name: &str, because: &str, seen: Option<Accepted<'_>>) {
        self.decide(None, Rule::ExpertLeftOut, format!("Left out the expert {name}"))
            .because(because)
            .seen(seen.as_ref().map(Accepted::evidence))
            .next("agents cannot ask it");
        let text = format!("The expert {name} was left out: {because}.");
        self.notice((Notice::ExpertLeftOut, Severity::Warning), None, text);
    }
}
