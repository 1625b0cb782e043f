//! What a shell command line runs, as far as its exit code tells about it.
//!
//! Not a shell: it splits a line into simple commands and knows what joins them. `npm test | tail`
//! ends with the exit code of `tail`, so nothing is known about the tests then.

/// How one simple command is joined to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Joint {
    And,
    Or,
    Pipe,
    /// `;`, `&` or a line break.
    Then,
    /// Nothing follows.
    End,
}

/// One command with its arguments, without redirections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<String>,
    pub(crate) next: Joint,
}

/// Splits a command line. Whatever is inside `$(...)` or backticks stays part of a word.
pub(crate) fn split(line: &str) -> Vec<Simple> {
    let mut splitter = Splitter::default();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        let next = rest.peek().copied();
        match c {
            '\'' => splitter.quoted(rest.by_ref().take_while(|c| *c != '\'')),
            '"' => {
                let mut inside = String::new();
                while let Some(c) = rest.next().filter(|c| *c != '"') {
                    inside.push(if c == '\\' { rest.next().unwrap_or(c) } else { c });
                }
                splitter.quoted(inside.chars());
            }
            '\\' => rest.next().filter(|c| *c != '\n').into_iter().for_each(|c| splitter.push(c)),
            '#' if splitter.word.is_none() => {
                rest.by_ref().take_while(|c| *c != '\n').for_each(drop);
                splitter.join(Joint::Then);
            }
            '&' if next == Some('&') => {
                rest.next();
                splitter.join(Joint::And);
            }
            // `2>&1` and `&>file` are redirections.
            '&' if splitter.word.as_deref().is_some_and(|word| word.ends_with('>')) => {
                splitter.push('&');
            }
            '&' if next == Some('>') => splitter.push('&'),
            '|' if next == Some('|') => {
                rest.next();
                splitter.join(Joint::Or);
            }
            '|' => splitter.join(Joint::Pipe),
            '&' | ';' | '\n' => splitter.join(Joint::Then),
            '(' | ')' if !splitter.word.as_deref().is_some_and(|word| word.contains('$')) => {
                splitter.end_word();
            }
            '{' | '}' if splitter.word.is_none() => {}
            ' ' | '\t' | '\r' => splitter.end_word(),
            c => splitter.push(c),
        }
    }
    splitter.join(Joint::End);
    if let Some(last) = splitter.commands.last_mut() {
        last.next = Joint::End;
    }
    splitter.commands
}

#[derive(Debug, Default)]
struct Splitter {
    word: Option<String>,
    words: Vec<String>,
    commands: Vec<Simple>,
}

impl Splitter {
    fn push(&mut self, c: char) {
        self.word.get_or_insert_default().push(c);
    }

    fn quoted(&mut self, inside: impl Iterator<Item = char>) {
        self.word.get_or_insert_default().extend(inside);
    }

    fn end_word(&mut self) {
        let Some(word) = self.word.take() else { return };
        let is_target = |before: &String| before.ends_with(['<', '>']);
        if self.words.last().is_some_and(is_target) {
            self.words.pop();
        } else {
            self.words.push(word);
        }
    }

    fn join(&mut self, next: Joint) {
        self.end_word();
        let mut words = std::mem::take(&mut self.words);
        words.retain(|word| !is_redirection(word));
        if !words.is_empty() {
            self.commands.push(Simple { words, next });
        }
    }
}

/// Returns whether a word sends output elsewhere: `>file`, `2>&1`, `&>/dev/null`.
fn is_redirection(word: &str) -> bool {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
    rest.starts_with(['<', '>'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str) -> String {
        let sign = |joint| match joint {
            Joint::And => " && ",
            Joint::Or => " || ",
            Joint::Pipe => " | ",
            Joint::Then => " ; ",
            Joint::End => "",
        };
        let all = split(line).into_iter();
        all.map(|simple| simple.words.join("·") + sign(simple.next)).collect()
    }

    #[test]
    fn lines_are_split_as_a_shell_does() {
        for (line, want) in [
            ("npm test", "npm·test"),
            ("cd 'a b' && npm  test", "cd·a b && npm·test"),
            ("cargo test 2>&1 | tail -20", "cargo·test | tail·-20"),
            ("npm test > out.txt 2>&1; echo $?", "npm·test ; echo·$?"),
            ("npm test &> log || true", "npm·test || true"),
            ("(cd x; make) & wait", "cd·x ; make ; wait"),
            ("a \"b \\\" ; c\" # d ; e\nf", "a·b \" ; c ; f"),
            ("make \\\n  check", "make·check"),
            ("", ""),
            (" ;; ", ""),
            ("npm test &&", "npm·test"),
            ("echo 'open", "echo·open"),
        ] {
            assert_eq!(shown(line), want, "{line}");
        }
    }
}
