//! The groups in which help shows the commands: what to type first is what stands first.

use std::fmt::Write as _;

use clap::Command;

/// What help shows, in this order.
const GROUPS: &[(&str, &[&str])] = &[
    ("Start here", &["init", "demo", "run", "deliver", "auto"]),
    ("See", &["status", "tasks", "why", "log", "output", "watch", "report", "postmortem", "proof"]),
    ("Steer", &["answer", "tell", "pause", "resume", "abort", "attach"]),
    ("Set up", &["install", "uninstall", "doctor", "config", "trust", "dialects", "plan"]),
    ("Connect", &["serve", "mcp", "signal", "worker", "store", "token"]),
    (
        "Tools",
        &[
            "scan",
            "explain",
            "prompt",
            "step",
            "replay",
            "schema",
            "completions",
            "man",
            "hook",
            "help",
        ],
    ),
];

/// Gives the command the help that shows its subcommands in groups.
pub(super) fn grouped(command: Command) -> Command {
    let header = *command.get_styles().get_header();
    let literal = *command.get_styles().get_literal();
    let visible = || command.get_subcommands().filter(|sub| !sub.is_hide_set());
    let width = visible().map(|sub| sub.get_name().len()).max().unwrap_or_default();
    let mut text = String::new();
    for (title, names) in GROUPS {
        let _written = writeln!(text, "{header}{title}:{header:#}");
        for name in *names {
            let Some(sub) = visible().find(|sub| sub.get_name() == *name) else { continue };
            let about = sub.get_about().cloned().unwrap_or_default();
            let _written = writeln!(text, "  {literal}{name:<width$}{literal:#}  {about}");
        }
        text.push('\n');
    }
    let template = format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{text}{header}Options:{header:#}\n{{options}}"
    );
    command.help_template(template)
}

#[cfg(test)]
mod tests {
    //! No command is left out.

    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_has_one_place_in_the_help() {
        let command = Cli::command();
        for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
            let places = GROUPS.iter().flat_map(|(_, names)| *names);
            assert_eq!(places.filter(|name| **name == sub.get_name()).count(), 1, "{sub}");
        }
    }
}
