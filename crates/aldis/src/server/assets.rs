//! The dashboard's files. No build step: they are served as they are written.

/// The page, whatever it shows.
pub(super) const PAGE: &str = include_str!("assets/index.html");
/// Where one logs in.
pub(super) const LOGIN: &str = include_str!("assets/login.html");
/// Where the link of a notice leads.
pub(super) const ANSWER: &str = include_str!("assets/answer.html");

/// A file that pages ask for: its name, what it is, and what is in it.
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

/// Declares the scripts.
macro_rules! scripts {
    ($($name:literal)*) => {
        &[
            Asset {
                path: "/assets/app.css",
                kind: "text/css; charset=utf-8",
                text: include_str!("assets/app.css"),
            },
            $(Asset {
                path: concat!("/assets/", $name),
                kind: "text/javascript; charset=utf-8",
                text: include_str!(concat!("assets/", $name)),
            },)*
        ]
    };
}

/// All of them. They are the same for everybody, and no secret.
pub(super) const ASSETS: &[Asset] = scripts! {
    "actions.js" "answer.js" "api.js" "app.js" "charts.js" "dom.js" "fleet.js" "journal.js" "login.js" "output.js"
    "overview.js" "run.js"
};

#[cfg(test)]
mod tests {
    use super::*;

    /// What a phone has to fetch, whatever it shows.
    #[test]
    fn the_dashboard_is_small() {
        let pages = [PAGE, LOGIN, ANSWER].map(str::len).iter().sum::<usize>();
        let all = pages + ASSETS.iter().map(|asset| asset.text.len()).sum::<usize>();
        assert!(all <= 150_000, "{all} bytes");
    }

    /// What the pages ask for is there, and comes from nowhere else.
    #[test]
    fn everything_that_is_asked_for_is_here() {
        let texts = ASSETS.iter().map(|asset| asset.text).chain([PAGE, LOGIN, ANSWER]);
        for text in texts {
            for (at, _) in text.match_indices("/assets/") {
                let path = text[at..].split('"').next().unwrap();
                assert!(ASSETS.iter().any(|asset| asset.path == path), "{path}");
            }
            for (at, _) in text.match_indices("from \"./") {
                let name = text[at + 8..].split('"').next().unwrap();
                assert!(ASSETS.iter().any(|it| it.path == format!("/assets/{name}")), "{name}");
            }
            assert!(!text.contains("https://"), "no request to others");
            for forbidden in
                ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("]
            {
                assert!(
                    !text.replace("there is no innerHTML here", "").contains(forbidden),
                    "{forbidden}"
                );
            }
        }
    }
}
