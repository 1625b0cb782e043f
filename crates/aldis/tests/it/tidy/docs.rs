//! The pages: none is lost, no link leads nowhere, and every command in them exists.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::{files, name_of, root};
use crate::sandbox::Sandbox;

/// Pages that are not in the book.
const BESIDE: &[&str] = &["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"];
/// What stands above a shell block that no test runs, with the reason.
const NOT_RUN: &str = "<!-- not run: ";

/// A shell block of a page.
pub(crate) struct Block {
    pub(crate) line: usize,
    pub(crate) text: String,
    /// Why it is not run.
    pub(crate) not_run: Option<String>,
}

/// Returns every document for people with its name, from the root of the repository.
fn documents() -> impl Iterator<Item = (String, String)> {
    // The test data are documents to be read, not to be followed.
    let data = root().join("testdata");
    let paths = files(&root(), &["md"]).into_iter().filter(move |path| !path.starts_with(&data));
    paths.map(|path| (name_of(&path), fs::read_to_string(path).unwrap()))
}

/// Returns the pages of the book and those beside it.
pub(crate) fn pages() -> Vec<(String, String)> {
    let is_page = |name: &str| name.starts_with("docs/") || BESIDE.contains(&name);
    let mut pages: Vec<_> = documents().filter(|(name, _)| is_page(name)).collect();
    pages.sort();
    pages
}

/// Returns the shell blocks of a page.
pub(crate) fn blocks(page: &str) -> Vec<Block> {
    let (mut blocks, mut above, mut open) = (Vec::<Block>::new(), "", None);
    for (number, line) in (1..).zip(page.lines()) {
        match &mut open {
            Some(_) if line.trim_end() == "```" => blocks.extend(open.take().flatten()),
            Some(Some(Block { text, .. })) => {
                text.push_str(line);
                text.push('\n');
            }
            Some(None) => {}
            None if line.starts_with("```") => {
                let reason = above.strip_prefix(NOT_RUN).and_then(|it| it.strip_suffix(" -->"));
                let not_run = reason.map(str::to_owned);
                let block = Block { line: number, text: String::new(), not_run };
                let language = line.trim_start_matches('`');
                open = Some(["sh", "bash", "shell"].contains(&language).then_some(block));
            }
            None => {}
        }
        if !line.is_empty() {
            above = line;
        }
    }
    blocks
}

/// Returns the links of a page, with their lines. Code holds none.
fn links(page: &str) -> Vec<(usize, String)> {
    let (mut found, mut fenced) = (Vec::new(), false);
    for (number, line) in (1..).zip(page.lines()) {
        fenced ^= line.trim_start().starts_with("```");
        if fenced || line.starts_with("    ") {
            continue;
        }
        let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("`");
        let targets = prose.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        found.extend(targets.map(|target| (number, target.to_owned())));
    }
    found
}

/// The anchor that a heading gets.
fn anchor(heading: &str) -> String {
    let kept = |letter: char| letter.is_alphanumeric() || "-_ ".contains(letter);
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars().filter(|letter| kept(*letter)).collect::<String>().replace(' ', "-")
}

#[test]
fn every_page_is_in_the_book() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut listed: Vec<String> =
        links(&summary).into_iter().map(|(_, target)| format!("docs/{target}")).collect();
    listed.sort();
    let pages = pages().into_iter().map(|(name, _)| name);
    let written: Vec<String> =
        pages.filter(|name| !BESIDE.contains(&&**name) && name != "docs/SUMMARY.md").collect();
    assert_eq!(listed, written, "docs/SUMMARY.md lists every page once");
}

#[test]
fn every_link_leads_somewhere() {
    let mut broken = Vec::new();
    for (name, text) in documents() {
        for (line, target) in links(&text) {
            if target.contains("://") || target.starts_with("mailto:") {
                continue;
            }
            let (file, heading) = target.split_once('#').unwrap_or((&target, ""));
            let folder = Path::new(&name).parent().unwrap();
            let path = if file.is_empty() { PathBuf::from(&name) } else { folder.join(file) };
            let read = fs::read(root().join(&path)).unwrap_or_default();
            let there = root().join(&path).exists();
            let page = String::from_utf8_lossy(&read);
            let headings = page.lines().filter(|line| line.starts_with('#'));
            let named = heading.is_empty() || headings.map(anchor).any(|it| it == heading);
            if !there || !named {
                broken.push(format!("{name}:{line}: {target}"));
            }
        }
    }
    assert_eq!(broken, [""; 0]);
}

#[test]
fn reasons_are_given_for_blocks_that_are_not_run() {
    for (name, text) in pages() {
        let reasons = text.lines().filter(|line| line.starts_with(NOT_RUN)).count();
        let marked = blocks(&text).iter().filter(|it| it.not_run.is_some()).count();
        assert_eq!(reasons, marked, "{name}: each stands above a shell block");
        for block in blocks(&text) {
            assert!(block.not_run.is_none_or(|it| it.len() > 5), "{name}:{}", block.line);
        }
    }
}

/// What `--help` says of each command.
struct Helps(Sandbox, BTreeMap<String, Option<String>>);

impl Helps {
    fn of(&mut self, command: &[&str]) -> Option<String> {
        let Self(sandbox, known) = self;
        let ask = || {
            let done = sandbox.run(&[command, &["--help"]].concat());
            (done.code == 0).then_some(done.stdout)
        };
        known.entry(command.join(" ")).or_insert_with(ask).clone()
    }

    /// Returns what is wrong with the words after `aldis`.
    fn check(&mut self, words: &[&str]) -> Option<String> {
        let is_name = |word: &&str| word.bytes().all(|it| it.is_ascii_lowercase() || it == b'-');
        let words = words.iter().take_while(|word| **word != "--" && !word.starts_with('<'));
        let words: Vec<&str> = words.copied().collect();
        let mut command = Vec::new();
        for word in words.iter().filter(|word| !word.starts_with('-')).take_while(|it| is_name(it))
        {
            let help = self.of(&command)?;
            if !command.is_empty() && !help.contains("\nCommands:\n") {
                break;
            }
            command.push(*word);
            let is_there =
                help.lines().any(|line| line.trim_start().split(' ').next() == Some(word));
            if !is_there || self.of(&command).is_none() {
                return Some(format!("no command `{}`", command.join(" ")));
            }
        }
        let help = self.of(&command)?;
        let flags = words.iter().filter(|word| word.len() > 1 && word.starts_with('-'));
        let mut names = flags.map(|flag| flag.split('=').next().unwrap());
        let ends =
            |rest: &str| !rest.starts_with(|it: char| it.is_ascii_alphanumeric() || it == '-');
        let known =
            |flag: &str| help.match_indices(flag).any(|(at, _)| ends(&help[at + flag.len()..]));
        names.find(|flag| !known(flag)).map(|flag| format!("`{}` has no {flag}", command.join(" ")))
    }
}

/// Returns the commands of ours in a line of a shell.
fn commands(line: &str) -> Vec<Vec<&str>> {
    let line = line.split(" #").next().unwrap();
    let parts = line.split(['|', ';', '(']).flat_map(|part| part.split("&&"));
    parts
        .filter_map(|part| {
            let words = part
                .split_whitespace()
                .skip_while(|it| ["$", "if"].contains(it) || it.contains('='));
            let mut words = words.map(|word| word.trim_matches(['[', ']', ',', '.', ')', '"']));
            (words.next() == Some("aldis")).then(|| words.collect())
        })
        .collect()
}

#[test]
fn every_command_exists() {
    let mut helps = Helps(Sandbox::new(), BTreeMap::new());
    let (mut wrong, mut checked) = (Vec::new(), 0);
    for (name, text) in pages() {
        let mut fenced = false;
        let joined = text.replace("\\\n", " ");
        for line in joined.lines() {
            fenced ^= line.trim_start().starts_with("```");
            let spans: Vec<&str> = match fenced {
                true => vec![line],
                false => line.split('`').skip(1).step_by(2).collect(),
            };
            for words in spans.iter().flat_map(|span| commands(span)) {
                checked += 1;
                wrong.extend(helps.check(&words).map(|what| format!("{name}: {what}: {line}")));
            }
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert!(checked > 200, "{checked}");
    // A test that finds nothing proves nothing.
    let finds = |line: &str| helps.check(&commands(line)[0]).is_some();
    assert_eq!(
        ["aldis frobnicate", "aldis auto begin", "aldis scan --no-such", "aldis scan --json -"]
            .map(finds),
        [true, true, true, false]
    );
}
