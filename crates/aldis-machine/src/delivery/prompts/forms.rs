//! What each role is for, and its signals as they are to be written, with the id of the task filled in.
//!
//! The texts stand in `roles.txt` as agents read them. A form is shown indented by four spaces under a
//! line that ends in a colon: an agent that repeats its prompt, or a host that stores it in the
//! transcript, reports nothing by that. A role is shown its own signals and no other.

use std::fmt::Write as _;

use super::super::signal::Role;

/// One section per role, and one per signal that several roles have.
const ROLES: &str = include_str!("roles.txt");

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

/// Returns what a role is for.
pub(super) fn duty(role: Role) -> String {
    let lines = section(role.as_str()).skip_while(|line| line.is_empty());
    lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Shows every form of a role.
pub(super) fn show(text: &mut String, context: FormContext<'_>) {
    let more: &[&str] = match context.role {
        Role::Expert | Role::Planner => &[],
        Role::Developer => &["file conflict", "question", "expert request", "checkpoint"],
        _ => &["question", "expert request"],
    };
    let asks = |name: &&&str| **name != "expert request" || context.expert.is_some();
    let names = [context.role.as_str()].into_iter().chain(more.iter().filter(asks).copied());
    for Form { when, lines } in names.flat_map(|name| context.forms(name)) {
        let _ = writeln!(text, "{when}\n");
        show_lines(text, &lines, context.token);
    }
}

/// Shows only the signals that end a role's work, without what stands below them.
pub(super) fn show_signals(text: &mut String, context: FormContext<'_>) {
    let mut forms = context.forms(context.role.as_str());
    if !matches!(context.role, Role::Expert | Role::Planner) {
        forms.extend(context.forms("question"));
    }
    for form in forms {
        show_lines(text, form.lines.get(..1).unwrap_or_default(), context.token);
    }
}

/// Shows how to report how far the work is.
pub(super) fn show_checkpoint(text: &mut String, context: FormContext<'_>) {
    for form in context.forms("checkpoint") {
        show_lines(text, &form.lines, context.token);
    }
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

/// The lines of a section.
fn section(name: &str) -> impl Iterator<Item = &'static str> {
    let lines = ROLES.lines().skip_while(move |line| line.strip_prefix("# ") != Some(name)).skip(1);
    lines.take_while(|line| !line.starts_with("# "))
}

impl FormContext<'_> {
    /// The forms of a section, filled in.
    fn forms(&self, name: &str) -> Vec<Form> {
        let mut forms: Vec<Form> = Vec::new();
        for line in section(name) {
            match (line.strip_prefix("    "), forms.last_mut()) {
                (Some(line), Some(form)) => form.lines.extend(self.fill(line)),
                (None, _) if line.ends_with(':') => {
                    forms.push(Form { when: line, lines: Vec::new() });
                }
                _ => {}
            }
        }
        forms
    }

    /// Fills in a line: none if its condition does not hold, one for each environment it asks for.
    fn fill(&self, line: &str) -> Vec<String> {
        for (condition, holds) in [
            ("{if open findings}", self.findings),
            ("{if settled findings}", self.settled),
            ("{if task}", self.id.is_some()),
        ] {
            if let Some(line) = line.strip_prefix(condition) {
                return if holds { self.fill(line) } else { Vec::new() };
            }
        }
        let environments = self.environments.filter(|names| !names.is_empty());
        if let (true, Some(names)) = (line.contains("{environment}"), environments) {
            return names.iter().map(|name| line.replace("{environment}", name)).collect();
        }
        let about = match self.role {
            Role::Planner => "plan",
            role => self.id.unwrap_or(role.as_str()),
        };
        let mut line = line.to_owned();
        for (mark, value) in [
            ("{about}", about),
            ("{blank}", ""),
            ("{environment}", "[environment]"),
            ("{expert}", self.expert.unwrap_or_default()),
            ("{id}", self.id.unwrap_or_default()),
        ] {
            line = line.replace(mark, value);
        }
        vec![line]
    }
}

#[cfg(test)]
mod tests {
    //! The texts are complete and of the form that is expected.

    use super::*;

    #[test]
    fn every_role_has_a_duty_and_forms() {
        for role in Role::ALL.iter().copied() {
            let context = FormContext {
                role,
                id: Some("t1"),
                expert: Some("crypto"),
                environments: None,
                findings: true,
                settled: true,
                token: None,
            };
            assert!(duty(role).ends_with('.') && !duty(role).contains('{'), "{}", duty(role));
            let mut text = String::new();
            show(&mut text, context);
            assert!(text.contains("write") && !text.contains(['{', '}']), "{text}");
        }
    }
}
