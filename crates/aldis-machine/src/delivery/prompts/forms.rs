//! The signals of each role as they are to be written, with the id of the task filled in.
//!
//! A form is shown indented by four spaces under a line that ends in a colon: an agent that repeats its
//! prompt, or a host that stores it in the transcript, reports nothing by that. A role is shown its own
//! signals and no other.

use std::fmt::Write as _;

use super::super::signal::Role;

/// What forms are filled in with.
#[derive(Clone, Copy, Debug)]
pub(super) struct FormContext<'s> {
    pub(super) role: Role,
    /// The task or the request.
    pub(super) id: Option<&'s str>,
    /// An expert that can be asked.
    pub(super) expert: Option<&'s str>,
    /// The environments that checks must cover; `None` where none are required.
    pub(super) environments: Option<&'s [String]>,
    /// Whether there are findings that can be disputed.
    pub(super) findings: bool,
    /// Whether there are settled findings.
    pub(super) settled: bool,
    /// The code that every signal must carry.
    pub(super) token: Option<&'s str>,
}

/// One signal: when to write it, and its lines.
struct Form {
    when: &'static str,
    lines: Vec<String>,
}

/// Returns a form from its signal and the lines below it.
fn form(when: &'static str, signal: String, below: &[&str]) -> Form {
    let below = below.iter().map(|&line| line.to_owned());
    Form { when, lines: std::iter::once(signal).chain(below).collect() }
}

/// Shows every form of a role.
pub(super) fn show(text: &mut String, context: FormContext<'_>) {
    for Form { when, lines } in forms(context) {
        let _ = writeln!(text, "{when}:\n");
        show_lines(text, &lines, context.token);
    }
}

/// Shows only the signals that end a role's work, without what stands below them.
pub(super) fn show_signals(text: &mut String, context: FormContext<'_>) {
    let mut forms = verdicts(context);
    if !matches!(context.role, Role::Expert | Role::Planner) {
        forms.push(question(context));
    }
    for form in forms {
        show_lines(text, form.lines.get(..1).unwrap_or_default(), context.token);
    }
}

/// Shows how to report how far the work is.
pub(super) fn show_checkpoint(text: &mut String, context: FormContext<'_>) {
    show_lines(text, &checkpoint(context).lines, context.token);
}

fn show_lines(text: &mut String, lines: &[String], token: Option<&str>) {
    for (index, line) in lines.iter().enumerate() {
        match line.is_empty() {
            true => text.push('\n'),
            false => drop(writeln!(text, "    {line}")),
        }
        if let (0, Some(token)) = (index, token) {
            let _ = writeln!(text, "    TOKEN: {token}");
        }
    }
    text.push('\n');
}

fn forms(context: FormContext<'_>) -> Vec<Form> {
    let mut forms = verdicts(context);
    match context.role {
        Role::Expert | Role::Planner => return forms,
        Role::Developer => forms.push(file_conflict()),
        _ => {}
    }
    forms.push(question(context));
    forms.extend(context.expert.map(expert_request));
    if context.role == Role::Developer {
        forms.push(checkpoint(context));
    }
    forms
}

/// The signals that say how the work of a role ended.
fn verdicts(context: FormContext<'_>) -> Vec<Form> {
    let id = context.id.unwrap_or_default();
    match context.role {
        Role::BusinessAnalyst => vec![form(
            "When you have specified the task, write",
            format!("EXPANDED_TASK_SPECIFICATION: {id}"),
            &[
                "Confidence: [HIGH, MEDIUM or LOW]",
                "Expanded Specification:",
                "[what exactly is wanted]",
                "Acceptance Criteria:",
                "- [ ] [a criterion that can be checked]",
                "Technical Approach: [how to do it]",
                "Target Files:",
                "- [path]",
            ],
        )],
        Role::Developer => developer(context, id),
        Role::Critic => critic(context, id),
        Role::Auditor => auditor(context, id),
        Role::Remediation => vec![form(
            "When the infrastructure works again, write",
            "REMEDIATION_COMPLETE".to_owned(),
            &["Issues Fixed:", "- [issue]: [fix]", "Verification Results:", "- [check]: PASS"],
        )],
        Role::HealthAuditor => vec![
            form(
                "When every check passes in every environment, write",
                "HEALTH_AUDIT: HEALTHY".to_owned(),
                &["Verification Results:", "- [check] ([environment]): PASS"],
            ),
            form(
                "When a check fails, write",
                "HEALTH_AUDIT: UNHEALTHY".to_owned(),
                &["Failed Checks:", "- [check] ([environment]): FAIL", "  Output: [error]"],
            ),
        ],
        Role::Expert => vec![
            form(
                "When you have an answer, write",
                format!("EXPERT_ADVICE: {id}"),
                &[
                    "Recommendation: [clear guidance]",
                    "Rationale:",
                    "- [why this is right here]",
                    "Next Steps: [what the agent should do]",
                ],
            ),
            form(
                "When you have no answer after three approaches, write",
                format!("EXPERT_UNSUCCESSFUL: {id}"),
                &["Attempts:", "1. [approach]: [outcome]", "Reason: [why you cannot help]"],
            ),
        ],
        Role::Planner => vec![form(
            "For each expert that you created, write",
            "EXPERT_CREATED: [expert-name]".to_owned(),
            &["Gap Filled: [what it knows]", "File: [path]"],
        )],
    }
}

fn developer(context: FormContext<'_>, id: &str) -> Vec<Form> {
    let mut ready = form(
        "When the work is done and you have checked it, write",
        format!("READY_FOR_REVIEW: {id}"),
        &["Files Modified:", "- [path]: [change]", "Tests Written:", "- [path]: [what it tests]"],
    );
    ready.lines.push("Verification Results:".to_owned());
    ready.lines.extend(checks(context));
    if context.findings {
        ready.lines.push("Disputed:".to_owned());
        ready.lines.push("- [a finding that is wrong]: [your reason]".to_owned());
    }
    ready.lines.push("Summary: [what you did]".to_owned());
    vec![
        ready,
        form(
            "When you cannot finish because something is missing, write",
            format!("TASK_INCOMPLETE: {id}"),
            &[
                "Blocker: [what is missing]",
                "Attempted: [what you tried]",
                "Needed: [what would unblock you]",
            ],
        ),
        form(
            "When something that every task needs is broken (tools, network, disk), write",
            format!("INFRA_BLOCKED: {id}"),
            &[
                "Issue: [what is broken]",
                "Command: [the command that failed]",
                "Output: [its error]",
                "Environment: [where]",
            ],
        ),
    ]
}

fn critic(context: FormContext<'_>, id: &str) -> Vec<Form> {
    let mut failed = form(
        "When it must be improved first, write",
        format!("REVIEW_FAILED: {id}"),
        &[
            "Issues Found:",
            "- [path]:[line]: [what is wrong]",
            "Required Fixes:",
            "- [what to do]",
            "Priority: [HIGH, MEDIUM or LOW]",
        ],
    );
    if context.settled {
        failed.lines.push("Evidence: [what is new, if you raise a settled finding]".to_owned());
    }
    vec![
        form(
            "When the work is good enough, write",
            format!("REVIEW_PASSED: {id}"),
            &["Files Reviewed:", "- [path]", "Summary: [your assessment]"],
        ),
        failed,
    ]
}

fn auditor(context: FormContext<'_>, id: &str) -> Vec<Form> {
    let mut passed = form(
        "When every acceptance criterion is met, write",
        format!("AUDIT_PASSED: {id}"),
        &["Verification Results:", "- [criterion]: VERIFIED - [evidence]", "Commands Executed:"],
    );
    passed.lines.extend(checks(context));
    passed.lines.push("Summary: [your conclusion]".to_owned());
    vec![
        passed,
        form(
            "When a criterion is not met, write",
            format!("AUDIT_FAILED: {id}"),
            &[
                "Failed Criteria:",
                "- [criterion]: FAILED - [reason]",
                "Required Fixes:",
                "- [what to do]",
            ],
        ),
        form(
            "When failures that are older than this task prevent the audit, write",
            format!("AUDIT_BLOCKED: {id}"),
            &["Pre-existing Failures:", "- [failure]"],
        ),
    ]
}

/// One line for each environment that must be covered.
fn checks(context: FormContext<'_>) -> Vec<String> {
    match context.environments {
        Some(environments) if !environments.is_empty() => {
            environments.iter().map(|name| format!("- [check] ({name}): PASS")).collect()
        }
        _ => vec!["- [check] ([environment]): PASS".to_owned()],
    }
}

fn file_conflict() -> Form {
    form(
        "When you must change a file that another task may hold, write",
        "FILE CONFLICT: [path]".to_owned(),
        &["I Need To: [the change]", "Reason: [why]", "Can Wait: [YES or NO]"],
    )
}

fn question(context: FormContext<'_>) -> Form {
    let mut question =
        form("When only a human can decide, write", "SEEKING_DIVINE_CLARIFICATION".to_owned(), &[]);
    question.lines.extend(context.id.map(|id| format!("Task: {id}")));
    let below = [
        "Question: [one question]",
        "Context: [what the human must know]",
        "Options Considered:",
        "- [option]: [why it is not enough]",
        "Attempts Made:",
        "- [what you tried]",
        "What Would Help: [the answer you need]",
    ];
    question.lines.extend(below.map(str::to_owned));
    question
}

fn expert_request(expert: &str) -> Form {
    form(
        "To ask an expert, write this with both marker lines",
        "EXPERT_REQUEST".to_owned(),
        &[
            &format!("Target Agent: {expert}"),
            "Request Type: [decision, interpretation, ambiguity, options or validation]",
            "Context Snapshot: [path of a file in which you wrote down what you know]",
            "",
            "---DELEGATION PROMPT START---",
            "[your question, with all that the expert must know]",
            "---DELEGATION PROMPT END---",
        ],
    )
}

fn checkpoint(context: FormContext<'_>) -> Form {
    let about = match context.role {
        Role::Planner => "plan",
        role => context.id.unwrap_or(role.as_str()),
    };
    form(
        "While you work, you may report how far you are (this does not end your work)",
        format!("CHECKPOINT: {about}"),
        &[
            "Progress: [percent or phase]",
            "Current Activity: [what you are doing]",
            "Blockers: [NONE, or what blocks you]",
        ],
    )
}
