//! Which files are protected, and which hold tests or say how they run.

use globset::{Glob, GlobSet, GlobSetBuilder};

/// Names of files that hold tests, or say to a runner which tests there are and how they run.
const TESTS: &[&str] = &[
    "**/tests/**",
    "**/test/**",
    "**/__tests__/**",
    "**/spec/**",
    "**/*_test.*",
    "**/test_*.*",
    "**/*.test.*",
    "**/*.spec.*",
    "**/*_spec.*",
    "**/*Test.{java,kt,cs,php,swift}",
    "**/*Tests.{java,kt,cs,php,swift}",
    "**/conftest.py",
    "**/pytest.ini",
    "**/tox.ini",
    "**/jest.config.*",
    "**/vitest.config.*",
    "**/vitest.workspace.*",
    "**/.mocharc*",
    "**/phpunit.xml*",
    "**/.rspec",
    "**/.config/nextest.toml",
    "**/.cargo/config.toml",
];

/// Patterns that were put together.
#[derive(Clone, Debug)]
pub(super) struct Patterns(GlobSet);

impl Patterns {
    /// Reads patterns: `tests/**`, `*.snap`, `package.json`. One without `/` fits in every folder.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the first bad one.
    pub(super) fn new<S: AsRef<str>>(patterns: &[S]) -> Result<Self, String> {
        let mut set = GlobSetBuilder::new();
        for pattern in patterns {
            let pattern = pattern.as_ref().trim().trim_start_matches("./");
            let inner = pattern.trim_end_matches('/');
            // As in a `.gitignore`: a folder stands for all that is in it.
            let whole = [inner.to_owned(), format!("{inner}/**")];
            for pattern in whole {
                let anywhere = !inner.contains('/');
                let glob = if anywhere { format!("**/{pattern}") } else { pattern };
                let glob = globset::GlobBuilder::new(&glob).literal_separator(true).build();
                set.add(glob.map_err(|error| format!("the pattern `{inner}`: {error}"))?);
            }
        }
        set.build().map(Self).map_err(|error| format!("the patterns: {error}"))
    }

    /// The names of test files.
    pub(super) fn of_tests() -> Self {
        let mut set = GlobSetBuilder::new();
        for glob in TESTS.iter().filter_map(|glob| Glob::new(glob).ok()) {
            set.add(glob);
        }
        Self(set.build().unwrap_or_else(|_| GlobSet::empty()))
    }

    /// Whether a path below the project, with `/`, fits.
    pub(super) fn fits(&self, path: &str) -> bool {
        self.0.is_match(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_known_by_their_names() {
        let tests = Patterns::of_tests();
        for path in [
            "tests/a.rs",
            "crates/x/tests/it/main.rs",
            "src/export.test.ts",
            "web/__tests__/a.js",
            "pkg/a_test.go",
            "test_export.py",
            "app/test_export.py",
            "src/test/java/ExportTest.java",
            "spec/export_spec.rb",
            "conftest.py",
            ".config/nextest.toml",
        ] {
            assert!(tests.fits(path), "{path}");
        }
        for path in ["src/main.rs", "src/contest.py", "latest.txt", "src/testing.rs", "Cargo.toml"]
        {
            assert!(!tests.fits(path), "{path}");
        }
    }

    #[test]
    fn patterns_are_those_of_people() {
        for (pattern, path, fits) in [
            ("tests/**", "tests/a/b.rs", true),
            ("tests/**", "x/tests/b.rs", false),
            ("tests/", "tests/a/b.rs", true),
            ("tests", "x/tests/b.rs", true),
            ("package.json", "package.json", true),
            ("package.json", "web/package.json", true),
            ("./package.json", "package.json", true),
            ("*.snap", "a/b.snap", true),
            ("src/*.rs", "src/a/b.rs", false),
            ("src/**/*.rs", "src/a/b.rs", true),
            (".github", ".github/workflows/ci.yml", true),
        ] {
            assert_eq!(Patterns::new(&[pattern]).unwrap().fits(path), fits, "{pattern} {path}");
        }
        assert!(Patterns::new(&["a[b"]).unwrap_err().starts_with("the pattern `a[b`: "));
    }
}
