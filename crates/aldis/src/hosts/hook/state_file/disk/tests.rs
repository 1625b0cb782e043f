//! Hostile places, and the ordinary one.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::*;

/// One way of reading, and of replacing.
type Way = (fn(&Path) -> ReadOutcome, fn(&Path, &str) -> io::Result<()>);

/// By descriptors, the same as on systems without files that have no name, and by names.
const WAYS: [Way; 3] =
    [(read, replace), (read, replace_by_name), (portable::read, replace_portably)];

fn text(found: ReadOutcome) -> String {
    match found {
        ReadOutcome::Absent => "nothing".to_owned(),
        ReadOutcome::Text(text) => text,
        ReadOutcome::Refused(_) => "refused".to_owned(),
    }
}

fn replace(project: &Path, text: &str) -> io::Result<()> {
    let next = NextVersion::prepare(project, text.to_owned())?;
    next.publish()?;
    next.sync()
}

/// As on systems without files that have no name.
fn replace_by_name(project: &Path, text: &str) -> io::Result<()> {
    let next = NextVersion::prepare(project, text.to_owned())?;
    let next = next.named();
    next.publish()?;
    next.sync()
}

fn replace_portably(project: &Path, text: &str) -> io::Result<()> {
    let next = portable::NextVersion::prepare(project, text.to_owned())?;
    next.publish()?;
    next.sync()
}

#[test]
fn files_are_replaced_whole() {
    for (read, replace) in WAYS {
        let project = tempfile::tempdir().unwrap();
        assert_eq!(text(read(project.path())), "nothing");
        for content in ["{}", "{\"a\":1}"] {
            replace(project.path(), content).unwrap();
            assert_eq!(text(read(project.path())), content);
        }
        // What a killed writer left behind is no obstacle.
        fs::write(project.path().join(".caw").join(NEXT), "torn").unwrap();
        replace(project.path(), "{}").unwrap();
        assert_eq!(text(read(project.path())), "{}");
        assert_eq!(fs::read_dir(project.path().join(".caw")).unwrap().count(), 1);
    }
}

#[test]
fn a_version_that_is_not_published_leaves_nothing() {
    let project = tempfile::tempdir().unwrap();
    replace(project.path(), "{}").unwrap();
    let versions = ["1", "2"].map(|text| NextVersion::prepare(project.path(), text.to_owned()));
    let [first, second] = versions.map(Result::unwrap);
    assert_eq!(text(read(project.path())), "{}", "nobody sees what is only prepared");
    second.publish().unwrap();
    drop(first);
    assert_eq!(text(read(project.path())), "2");
    assert_eq!(fs::read_dir(project.path().join(".caw")).unwrap().count(), 1);
}

#[test]
fn links_pipes_and_directories_are_refused() {
    for (read, replace) in WAYS {
        refuses(read, replace);
    }
}

fn refuses(read: fn(&Path) -> ReadOutcome, replace: fn(&Path, &str) -> io::Result<()>) {
    let victim = tempfile::tempdir().unwrap();
    fs::write(victim.path().join(FILE), "secret").unwrap();
    let project = tempfile::tempdir().unwrap();
    let caw = project.path().join(".caw");
    symlink(victim.path(), &caw).unwrap();
    assert_eq!(text(read(project.path())), "refused");
    assert!(replace(project.path(), "{}").is_err());

    fs::remove_file(&caw).unwrap();
    fs::create_dir(&caw).unwrap();
    symlink(victim.path().join(FILE), caw.join(FILE)).unwrap();
    assert_eq!(text(read(project.path())), "refused");
    assert!(replace(project.path(), "{}").is_err());

    fs::remove_file(caw.join(FILE)).unwrap();
    fs::create_dir(caw.join(FILE)).unwrap();
    assert_eq!(text(read(project.path())), "refused");
    assert!(replace(project.path(), "{}").is_err());
    assert_eq!(fs::read_to_string(victim.path().join(FILE)).unwrap(), "secret");
}

#[test]
fn huge_files_are_refused() {
    let project = tempfile::tempdir().unwrap();
    fs::create_dir(project.path().join(".caw")).unwrap();
    let file = File::create(project.path().join(".caw").join(FILE)).unwrap();
    file.set_len(BYTES_MAX + 1).unwrap();
    for (read, _) in WAYS {
        assert_eq!(text(read(project.path())), "refused");
    }
}
