//! What is quoted by structure, against a Markdown parser.
//!
//! One marker stands among lines that begin and end blocks. It is plain text to Markdown, and counts
//! exactly where the parser does not put it into a quotation, code, a table, a link or a deletion.

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::*;

const MARKER: &str = "@@@SHIPPED@@";

const AROUND: &[&str] = &[
    "",
    "",
    "",
    "Some words.",
    "more of them",
    "> quoted words",
    ">",
    "> # head",
    "- item",
    "1. item",
    "# head",
    "```",
    "~~~",
    "````",
    "---",
    "a | b",
    "---|---",
    "    deep",
    "a ` tick",
];

const MARKED: &[&str] = &[
    "@@@SHIPPED@@",
    "  @@@SHIPPED@@",
    "    @@@SHIPPED@@",
    "      @@@SHIPPED@@",
    "- @@@SHIPPED@@",
    "> @@@SHIPPED@@",
    "- > @@@SHIPPED@@",
    "a | @@@SHIPPED@@",
    "`@@@SHIPPED@@`",
    "x `` @@@SHIPPED@@ `` y",
    "~~@@@SHIPPED@@~~",
    "[@@@SHIPPED@@](x.md)",
    "**@@@SHIPPED@@**",
];

/// Returns whether the parser quotes the marker, and whether it stands in a table.
fn quoted_by_parser(text: &str, at: usize) -> (bool, bool) {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let mut open: Vec<bool> = Vec::new();
    let mut tables = 0;
    for (event, range) in Parser::new_ext(text, options).into_offset_iter() {
        match event {
            Event::Start(tag) => {
                let quotes = matches!(
                    tag,
                    Tag::BlockQuote(_) | Tag::CodeBlock(_) | Tag::Link { .. } | Tag::Strikethrough
                );
                tables += usize::from(matches!(tag, Tag::Table(_)));
                open.push(quotes);
            }
            Event::End(end) => {
                open.pop();
                tables -= usize::from(matches!(end, pulldown_cmark::TagEnd::Table));
            }
            Event::Code(_) if range.contains(&at) => return (true, tables > 0),
            Event::Text(_) if range.contains(&at) => {
                return (open.contains(&true) || tables > 0, tables > 0);
            }
            _ => {}
        }
    }
    panic!("the marker is gone: {text:?}")
}

fn rules() -> Rules {
    let mut dialect = Dialect::from_toml(
        "v = 1\nname = \"team\"\nabout = \"a\"\nstanding = \"end\"\nverdict_words = false\n\
         [syntax]\nfamily = \"tag\"\nopen = \"@@@\"\nclose = \"@@\"\n\
         [[signals]]\nname = \"SHIPPED\"\nmeaning = \"done\"\n",
    )
    .unwrap();
    dialect.prompt.clear();
    Rules::new([Arc::new(dialect)])
}

/// To Markdown the last two lines are rows, and code does not go on from one cell to the next.
#[test]
fn a_table_ends_at_the_first_line_without_a_bar() {
    let text = "a | b\n---|---\na ` tick\n`@@@SHIPPED@@`\n";
    assert_eq!(quoted_by_parser(text, text.find(MARKER).unwrap()), (true, true));
    assert_eq!(taken(&rules(), text).len(), 1);
}

proptest! {
    #![proptest_config(cases(2048))]

    #[test]
    fn what_is_quoted_is_what_a_parser_quotes(
        before in vec(owned(AROUND), 0..7), marked in select(MARKED), after in vec(owned(AROUND), 0..4),
    ) {
        // Parsers do not agree whether a table may go on with a paragraph.
        let rows = before.iter().rev().take_while(|line| line.contains('|')).count();
        let (above, rows) = before.split_at(before.len() - rows);
        let table = rows.is_empty() || rows.starts_with(&["a | b".into(), "---|---".into()]);
        let apart = above.last().is_none_or(|line| line.is_empty()) && table;
        prop_assume!(!marked.contains('|') || apart);
        let mut all = before;
        let start: usize = all.iter().map(|line| line.len() + 1).sum();
        all.push(marked.to_owned());
        all.extend(after);
        let text = joined(&all, false, true);
        let at = start + marked.find(MARKER).unwrap();
        let (quoted, in_table) = quoted_by_parser(&text, at);
        // A table ends at the first line without a bar, which Markdown sees otherwise.
        prop_assume!(!in_table || marked.contains('|'));
        let counts = !taken(&rules(), &text).is_empty();
        prop_assert_eq!(counts, !quoted, "{}", text);
    }
}
