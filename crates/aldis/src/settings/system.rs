//! What depends on the operating system and on nothing else: variables, folders, quoting, names of
//! programs. Every function takes the system, so that all of them are tested on any of them.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// An operating system, as far as paths and shells go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// And every other Unix.
    Linux,
    /// macOS.
    MacOs,
    /// Windows.
    Windows,
}

/// The endings of programs where `PATHEXT` does not say.
const PATHEXT: &str = ".COM;.EXE;.BAT;.CMD";

impl System {
    /// The one this program runs on.
    pub(crate) const CURRENT: Self = if cfg!(windows) {
        Self::Windows
    } else if cfg!(target_os = "macos") {
        Self::MacOs
    } else {
        Self::Linux
    };

    /// Returns the user's home: what the hosts take for it, which on Windows is not `HOME`, even where
    /// a shell has set that.
    pub(crate) fn home(self, get: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match self {
            Self::Linux | Self::MacOs => set("HOME"),
            Self::Windows => set("USERPROFILE").or_else(|| set("HOME")),
        }
    }

    /// Returns where temporary files are, as far as variables tell.
    pub(crate) fn temp(self, get: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        let set = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        match self {
            Self::Linux | Self::MacOs => set("TMPDIR"),
            Self::Windows => set("TEMP").or_else(|| set("TMP")),
        }
    }

    /// Returns the folder of this program below the user's state.
    pub(crate) fn state(self, get: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        self.own_folder(get, "XDG_STATE_HOME", "LOCALAPPDATA", ".local/state")
    }

    /// Returns the folder of this program below the user's configuration.
    pub(crate) fn config(self, get: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
        self.own_folder(get, "XDG_CONFIG_HOME", "APPDATA", ".config")
    }

    fn own_folder(
        self,
        get: impl Fn(&str) -> Option<OsString>,
        named: &str,
        on_windows: &str,
        in_home: &str,
    ) -> Option<PathBuf> {
        let set = |name: &str| get(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        // The rule of those variables: what is not absolute is as if it were not there.
        let named = set(named).filter(|path| self.is_absolute(&path.to_string_lossy()));
        let usual = || match self {
            Self::Linux | Self::MacOs => None,
            Self::Windows => set(on_windows),
        };
        let home = || Some(self.below(&self.home(&get)?, in_home));
        Some(self.below(&named.or_else(usual).or_else(home)?, "aldis"))
    }

    /// Returns a path below a folder. It is written with slashes.
    pub(crate) fn below(self, folder: &Path, relative: &str) -> PathBuf {
        match self {
            Self::Linux | Self::MacOs => folder.join(relative),
            Self::Windows => {
                let mut path = folder.as_os_str().to_owned();
                if !path.to_string_lossy().ends_with(['\\', '/']) {
                    path.push("\\");
                }
                path.push(relative.replace('/', "\\"));
                path.into()
            }
        }
    }

    /// Whether a path says where it begins. On Windows that takes a drive or a server.
    pub(crate) fn is_absolute(self, path: &str) -> bool {
        match self {
            Self::Linux | Self::MacOs => path.starts_with('/'),
            Self::Windows => match path.as_bytes() {
                [drive, b':', b'\\' | b'/', ..] => drive.is_ascii_alphabetic(),
                [b'\\', b'\\', ..] => true,
                _ => false,
            },
        }
    }

    /// Returns the file names under which a program may be found.
    pub(crate) fn spellings(self, program: &str, endings: Option<&str>) -> Vec<String> {
        match self {
            Self::Linux | Self::MacOs => vec![program.to_owned()],
            Self::Windows if Path::new(program).extension().is_some() => vec![program.to_owned()],
            Self::Windows => {
                let endings = endings.unwrap_or(PATHEXT).split(';').filter(|it| !it.is_empty());
                endings.map(|ending| format!("{program}{ending}")).collect()
            }
        }
    }

    /// Returns the ways in which programs write a path of theirs down.
    pub(crate) fn written(self, path: &str) -> Vec<String> {
        let mut written = vec![path.to_owned()];
        if self == Self::Windows && path.contains('\\') {
            written.push(path.replace('\\', "/"));
        }
        written
    }

    /// Returns the program that runs what a user wrote for a shell, and the option before that.
    pub(crate) fn shell(self) -> [&'static str; 2] {
        match self {
            Self::Linux | Self::MacOs => ["/bin/sh", "-c"],
            Self::Windows => ["cmd", "/C"],
        }
    }

    /// Quotes a word for the shell that runs a host's hooks, where it must be: a POSIX shell, `cmd` on
    /// Windows, where no file name has a quotation mark in it.
    pub(crate) fn quote(self, word: &str) -> String {
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./+:@%,=".contains(c);
        let plain_there = |c: char| c.is_ascii_alphanumeric() || "-_./+:@\\".contains(c);
        match self {
            _ if word.is_empty() => self.in_quotes(word),
            Self::Linux | Self::MacOs if word.chars().all(plain) => word.to_owned(),
            Self::Windows if word.chars().all(plain_there) => word.to_owned(),
            _ => self.in_quotes(word),
        }
    }

    fn in_quotes(self, word: &str) -> String {
        match self {
            Self::Linux | Self::MacOs => format!("'{}'", word.replace('\'', r"'\''")),
            Self::Windows => format!("\"{word}\""),
        }
    }

    /// Splits a line of that shell into words, unless it would do more with it than that.
    pub(crate) fn split(self, line: &str) -> Option<Vec<String>> {
        let mut words = Vec::new();
        let mut word: Option<String> = None;
        let mut chars = line.chars();
        let is_posix = self != Self::Windows;
        while let Some(c) = chars.next() {
            match c {
                ' ' | '\t' => words.extend(word.take()),
                '\'' if is_posix => {
                    word.get_or_insert_default().push_str(&quoted(&mut chars, '\'', "")?);
                }
                '"' => {
                    let special = if is_posix { "$`\\!" } else { "%" };
                    word.get_or_insert_default().push_str(&quoted(&mut chars, '"', special)?);
                }
                '\\' if is_posix => word.get_or_insert_default().push(chars.next()?),
                c if is_posix && "$`;|&<>(){}[]*?#~!\n\r".contains(c) => return None,
                c if !is_posix && "%^&|<>()\n\r".contains(c) => return None,
                c => word.get_or_insert_default().push(c),
            }
        }
        words.extend(word);
        Some(words)
    }
}

/// Reads up to a quotation mark, unless the shell does something with what stands before it.
fn quoted(chars: &mut std::str::Chars<'_>, mark: char, special: &str) -> Option<String> {
    let mut text = String::new();
    loop {
        match chars.next()? {
            c if c == mark => return Some(text),
            c if special.contains(c) => return None,
            c => text.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    //! All systems, on whichever runs the tests.

    use super::System::{Linux, MacOs, Windows};
    use super::*;

    /// Looks variables up in `NAME=VALUE` words, which are parted by `|`.
    fn variables(set: &str) -> impl Fn(&str) -> Option<OsString> + '_ {
        |name: &str| {
            let mut pairs = set.split('|').filter_map(|pair| pair.split_once('='));
            pairs.find(|(key, _)| *key == name).map(|(_, value)| value.into())
        }
    }

    #[test]
    fn folders_are_found() {
        let unix = "HOME=/home/me";
        let mac = "HOME=/Volumes/me|TMPDIR=/var/folders/x/T/";
        let windows = r"USERPROFILE=C:\Users\me|HOME=/c/me|APPDATA=C:\Users\me\AppData\Roaming|LOCALAPPDATA=C:\Users\me\AppData\Local|TEMP=C:\Temp";
        // home, state, configuration, temporary files
        let table = [
            (
                Linux,
                unix,
                ["/home/me", "/home/me/.local/state/aldis", "/home/me/.config/aldis", ""],
            ),
            (
                Linux,
                "HOME=/h|XDG_STATE_HOME=/s|XDG_CONFIG_HOME=relative|TMPDIR=/t",
                ["/h", "/s/aldis", "/h/.config/aldis", "/t"],
            ),
            (Linux, "HOME=", ["", "", "", ""]),
            (Linux, r"USERPROFILE=C:\Users\me", ["", "", "", ""]),
            (
                MacOs,
                mac,
                [
                    "/Volumes/me",
                    "/Volumes/me/.local/state/aldis",
                    "/Volumes/me/.config/aldis",
                    "/var/folders/x/T/",
                ],
            ),
            (
                Windows,
                windows,
                [
                    r"C:\Users\me",
                    r"C:\Users\me\AppData\Local\aldis",
                    r"C:\Users\me\AppData\Roaming\aldis",
                    r"C:\Temp",
                ],
            ),
            (
                Windows,
                r"USERPROFILE=C:\Users\me|XDG_STATE_HOME=/not/absolute/there|XDG_CONFIG_HOME=D:\config|TMP=D:\t",
                [r"C:\Users\me", r"C:\Users\me\.local\state\aldis", r"D:\config\aldis", r"D:\t"],
            ),
            (
                Windows,
                "HOME=/c/me",
                ["/c/me", r"/c/me\.local\state\aldis", r"/c/me\.config\aldis", ""],
            ),
        ];
        for (system, set, expected) in table {
            let found = [
                system.home(variables(set)),
                system.state(variables(set)),
                system.config(variables(set)),
                system.temp(variables(set)),
            ];
            let found = found.map(|path| path.unwrap_or_default().display().to_string());
            assert_eq!(found, expected, "{system:?} {set}");
        }
    }

    #[test]
    fn absolute_paths_are_told() {
        let table = [
            ("/usr/bin/aldis", [true, false]),
            ("usr/bin", [false, false]),
            (r"C:\Program Files\aldis.exe", [false, true]),
            ("c:/aldis", [false, true]),
            (r"C:aldis", [false, false]),
            (r"\\server\share\aldis", [false, true]),
            (r"\aldis", [false, false]),
            ("1:/aldis", [false, false]),
            ("", [false, false]),
        ];
        for (path, expected) in table {
            assert_eq!([Linux, Windows].map(|it| it.is_absolute(path)), expected, "{path}");
            assert_eq!(MacOs.is_absolute(path), expected[0], "{path}");
        }
    }

    #[test]
    fn programs_have_endings_where_they_must() {
        let table: &[(System, &str, Option<&str>, &[&str])] = &[
            (Linux, "claude", Some(".EXE"), &["claude"]),
            (MacOs, "claude", None, &["claude"]),
            (Windows, "claude", Some(".EXE;.CMD;"), &["claude.EXE", "claude.CMD"]),
            (Windows, "claude", None, &["claude.COM", "claude.EXE", "claude.BAT", "claude.CMD"]),
            (Windows, "claude.cmd", None, &["claude.cmd"]),
        ];
        for (system, program, endings, expected) in table {
            assert_eq!(system.spellings(program, *endings), *expected, "{system:?} {program}");
        }
    }

    #[test]
    fn words_are_quoted_for_the_shell_of_the_system() {
        let table = [
            ("aldis", "aldis", "aldis"),
            ("", "''", "\"\""),
            ("/opt/a b/aldis", "'/opt/a b/aldis'", "\"/opt/a b/aldis\""),
            ("/it's/aldis", r"'/it'\''s/aldis'", "\"/it's/aldis\""),
            (r"C:\aldis\aldis.exe", r"'C:\aldis\aldis.exe'", r"C:\aldis\aldis.exe"),
            (
                r"C:\Program Files\aldis.exe",
                r"'C:\Program Files\aldis.exe'",
                r#""C:\Program Files\aldis.exe""#,
            ),
            ("C:\\a&b\\aldis", "'C:\\a&b\\aldis'", "\"C:\\a&b\\aldis\""),
        ];
        for (word, posix, windows) in table {
            let quoted = [Linux, MacOs, Windows].map(|system| system.quote(word));
            assert_eq!(quoted, [posix, posix, windows], "{word}");
            for system in [Linux, MacOs, Windows] {
                let line = format!("{} hook codex", system.quote(word));
                let words = [word, "hook", "codex"].map(str::to_owned);
                assert_eq!(system.split(&line), Some(words.into()), "{system:?} {line}");
            }
        }
    }

    #[test]
    fn lines_that_a_shell_would_change_are_left_alone() {
        let table = [
            ("aldis hook \"$(id)\"", [true, false]),
            ("aldis hook %PATH%", [false, true]),
            ("aldis hook codex & del x", [true, true]),
            ("aldis hook codex; rm x", [true, false]),
            ("aldis hook ^", [false, true]),
            ("aldis \"hook", [true, true]),
        ];
        for (line, expected) in table {
            assert_eq!([Linux, Windows].map(|it| it.split(line).is_none()), expected, "{line}");
        }
    }

    proptest::proptest! {
        /// Windows forbids these in names of files, and a line has no end within.
        #[test]
        fn what_is_quoted_is_read_back(word in "[^\0\n\r\"%]{0,20}") {
            for system in [Linux, MacOs, Windows] {
                proptest::prop_assert_eq!(system.split(&system.quote(&word)), Some(vec![word.clone()]));
            }
        }
    }
}
