//! Which entries of a file belong to the conversation as it stands.
//!
//! Entries name their parent, or follow each other. What was taken back stays in the file: as a
//! branch that nothing live hangs on, or with a later line that says how far the conversation went
//! back. Live is the way from the last leaf up to the root, without what was taken back.

use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use aldis_signal::message::{Message, Role};

/// What an entry says about its place in the conversation.
#[derive(Debug, Default)]
pub(crate) struct Link<'a> {
    pub(crate) id: Option<Cow<'a, str>>,
    pub(crate) parent: Parent<'a>,
    pub(crate) session: Option<Cow<'a, str>>,
    pub(crate) standing: EntryStanding,
    /// An entry with the same id is an older version of this one.
    pub(crate) is_version: bool,
}

/// What an entry says about its parent.
#[derive(Debug, Default)]
pub(crate) enum Parent<'a> {
    /// Nothing: it follows the entry before it.
    #[default]
    Before,
    /// That it has none: a conversation begins here.
    Root,
    Id(Cow<'a, str>),
}

/// What an entry means for the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum EntryStanding {
    /// Typed by a human: a turn begins.
    Typed,
    /// Any other part of the conversation.
    #[default]
    Spoken,
    /// Written about the conversation: it may be a parent, but does not say which branch is live.
    Note,
    /// Of a sub-agent.
    Side,
    /// Of another member of a team.
    Team,
}

/// How far a conversation goes back.
#[derive(Debug)]
pub(crate) enum Rewind<'a> {
    /// To before the entry of this id.
    Before(Cow<'a, str>),
    /// By so many turns.
    Turns(u64),
    /// To its beginning. Entries may come again under their ids.
    All,
}

/// Where an entry was put.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Added {
    New(u32),
    /// The entry that this one takes the place of.
    Version {
        node: u32,
        of: u32,
    },
    /// This very entry is in the file already.
    Copy,
}

/// The entries of a file in order.
#[derive(Debug, Default)]
pub(crate) struct History {
    nodes: Vec<Node>,
    hasher: RandomState,
    by_id: HashMap<u64, u32>,
    /// The last entry of each session's main conversation.
    last: HashMap<u64, u32>,
    /// Those that were not taken back, in order: a rewind takes them from the end, each once.
    standing: Vec<u32>,
    /// Nodes whose parent was not seen before them.
    forward: Vec<(u32, u64)>,
    /// The beginning of the file is not read.
    is_late: bool,
    /// The session that counts, if one is named.
    session: Option<u64>,
}

/// Ids and sessions are kept as hashes: a gigabyte of transcript has a million entries.
#[derive(Debug)]
struct Node {
    id: Option<u64>,
    parent: Option<u32>,
    session: Option<u64>,
    words: u64,
    standing: EntryStanding,
    is_rewound: bool,
}

impl History {
    /// Says that the entries to come are the last ones of a file, and which session counts.
    pub(crate) fn begin_late(&mut self, session: Option<&str>) {
        self.is_late = true;
        self.session = session.map(|session| self.hash(session));
    }

    /// Adds an entry. The agent's words in it tell it apart from others with its id: the host writes an
    /// entry again with another version or session in it, and that is the same entry.
    pub(crate) fn add(&mut self, link: &Link<'_>, words: &str) -> Added {
        let Ok(number) = u32::try_from(self.nodes.len()) else { return Added::Copy };
        let id = link.id.as_ref().map(|id| self.hash(id));
        let session = link.session.as_ref().map(|session| self.hash(session));
        let words = self.hash(words);
        let earlier = id.and_then(|id| self.by_id.get(&id)).copied();
        let mut added = Added::New(number);
        if let Some(earlier) = earlier {
            let node = &mut self.nodes[earlier as usize];
            // Where one session is asked for, its own entry counts.
            let is_same = self.session.is_none() || node.session == session;
            if link.is_version {
                added = Added::Version { node: number, of: earlier };
            } else if node.words == words && is_same {
                // A session that goes on in another one's file writes down what it took over.
                node.session = session;
                return Added::Copy;
            }
        }
        let standing = link.standing;
        let parent = self.parent(link, number, session);
        self.nodes.push(Node { id, parent, session, words, standing, is_rewound: false });
        if standing != EntryStanding::Side {
            self.last.insert(session.unwrap_or_default(), number);
            self.standing.push(number);
        }
        if let Some(id) = id {
            self.by_id.insert(id, number);
        }
        added
    }

    /// Takes back what came last.
    pub(crate) fn rewind(&mut self, rewind: &Rewind<'_>) {
        let mut turns = 0;
        let (from, is_forgotten) = match rewind {
            Rewind::All => (0, false),
            Rewind::Turns(0) => return,
            Rewind::Turns(count) => {
                turns = *count;
                (0, true)
            }
            Rewind::Before(id) => {
                // An unknown entry is one before all that were read, if there may be such.
                let known = self.by_id.get(&self.hash(id)).copied();
                match known.or_else(|| self.is_late.then_some(0)) {
                    Some(from) => (from, true),
                    None => return,
                }
            }
        };
        while let Some(number) = self.standing.pop_if(|number| *number >= from) {
            let node = &mut self.nodes[number as usize];
            node.is_rewound = true;
            // Should an id be used again, that is another entry.
            if let Some(id) = node.id.filter(|_| is_forgotten) {
                self.by_id.remove(&id);
            }
            if node.standing == EntryStanding::Typed && turns > 0 {
                turns -= 1;
                if turns == 0 {
                    break;
                }
            }
        }
        let last = self.standing.last().copied();
        self.last.retain(|_, node| last.is_some_and(|last| *node <= last));
        if let Some(last) = last {
            let session = self.nodes[last as usize].session.unwrap_or_default();
            self.last.insert(session, last);
        }
    }

    /// Returns the entry that came last.
    pub(crate) fn latest(&self) -> Option<u32> {
        u32::try_from(self.nodes.len()).ok()?.checked_sub(1)
    }

    /// Finds the live branch.
    pub(crate) fn live(mut self) -> Live {
        for (number, id) in std::mem::take(&mut self.forward) {
            if let Some(parent) = self.by_id.get(&id).filter(|parent| **parent != number) {
                self.nodes[number as usize].parent = Some(*parent);
            }
        }
        let mut on_branch = vec![false; self.nodes.len()];
        let leaf = self.leaf();
        let mut next = leaf;
        while let Some(number) = next {
            let is_cycle = std::mem::replace(&mut on_branch[number], true);
            next = if is_cycle { None } else { self.up(number) };
        }
        let session = leaf.and_then(|leaf| self.nodes[leaf].session);
        Live { on_branch, nodes: self.nodes, session }
    }

    fn hash(&self, id: &str) -> u64 {
        self.hasher.hash_one(id)
    }

    fn parent(&mut self, link: &Link<'_>, number: u32, session: Option<u64>) -> Option<u32> {
        // Who names no parent follows what its own session said before it.
        let before = match session {
            Some(session) => self.last.get(&session).or_else(|| self.last.get(&0)).copied(),
            None => self.standing.last().copied(),
        };
        let before = before.filter(|_| link.standing != EntryStanding::Side);
        match &link.parent {
            Parent::Before => before,
            Parent::Root => None,
            Parent::Id(parent) => {
                let parent = self.hash(parent);
                let known = self.by_id.get(&parent).copied();
                known.or_else(|| {
                    // Lost with a bad line, or still to come: a lost parent must not cut off the
                    // whole history. Where the history begins late, a prompt on an unknown entry went
                    // back to one before it, and what came since was taken back.
                    self.forward.push((number, parent));
                    before.filter(|_| !(self.is_late && link.standing == EntryStanding::Typed))
                })
            }
        }
    }

    fn up(&self, number: usize) -> Option<usize> {
        self.nodes[number].parent.map(|parent| parent as usize)
    }

    /// Returns the last leaf that is neither of a sub-agent nor of a team nor written by the host.
    ///
    /// A leaf written by the host stands for the entry it was written about: hook feedback at the
    /// end of the file must not make an older branch the live one.
    fn leaf(&self) -> Option<usize> {
        let mut is_parent = vec![false; self.nodes.len()];
        for node in self.nodes.iter().filter(|node| !node.is_rewound) {
            if let Some(parent) = node.parent {
                is_parent[parent as usize] = true;
            }
        }
        let is_leaf = |number: &usize| !is_parent[*number] && !self.nodes[*number].is_rewound;
        let mut best = None;
        for number in (0..self.nodes.len()).rev().filter(is_leaf) {
            if best.is_some_and(|best| number <= best) {
                break;
            }
            let node = &self.nodes[number];
            let is_foreign = self.session.is_some()
                && node.session.is_some_and(|session| Some(session) != self.session);
            if is_foreign || matches!(node.standing, EntryStanding::Side | EntryStanding::Team) {
                continue;
            }
            best = best.max(self.written_about(number));
        }
        best.or_else(|| (0..self.nodes.len()).rev().find(is_leaf))
            .or_else(|| (0..self.nodes.len()).rev().find(|number| !self.nodes[*number].is_rewound))
    }

    fn written_about(&self, leaf: usize) -> Option<usize> {
        let mut number = leaf;
        for _ in 0..NOTES_MAX {
            if self.nodes[number].standing != EntryStanding::Note {
                return Some(number);
            }
            number = self.up(number)?;
        }
        Some(number)
    }
}

/// The answer, once the whole file is known.
#[derive(Debug)]
pub(crate) struct Live {
    on_branch: Vec<bool>,
    nodes: Vec<Node>,
    session: Option<u64>,
}

impl Live {
    /// Returns why an entry is not part of the conversation, if it is not.
    pub(crate) fn dead(&self, number: u32) -> Option<&'static str> {
        let node = self.nodes.get(number as usize)?;
        let is_live = self.on_branch[number as usize] || node.standing == EntryStanding::Side;
        if is_live && !node.is_rewound {
            return None;
        }
        let is_foreign = node.session.is_some() && node.session != self.session;
        Some(if is_foreign { "another session" } else { "rewound branch" })
    }

    /// Marks a message that an entry holds if it is not part of the conversation.
    pub(crate) fn mark(&self, number: u32, message: &mut Message) {
        let origin = &mut message.origin;
        let why = match origin.role {
            Role::Subagent | Role::Tool => self.dead_result(number),
            Role::Assistant | Role::Host | Role::System | Role::User => self.dead(number),
        };
        let Some(why) = why else { return };
        origin.live = false;
        if origin.role == Role::Assistant && origin.detail.is_none() {
            origin.detail = Some(why.into());
        }
    }

    /// As [`dead`](Self::dead) for a tool result. Results of calls that ran side by side hang on
    /// their calls, and only one of them is on the way up: the call decides.
    fn dead_result(&self, number: u32) -> Option<&'static str> {
        let parent = self.nodes.get(number as usize)?.parent;
        self.dead(number).filter(|_| parent.is_none_or(|parent| self.dead(parent).is_some()))
    }
}

/// The host writes a few lines at a time; the branch is known also if there are more.
const NOTES_MAX: usize = 64;
