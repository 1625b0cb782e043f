//! Which entries of a file belong to the conversation as it stands.
//!
//! Entries name their parent. A rewound conversation leaves its old branch in the file, so only the
//! way from the last leaf up to the root is live. A gigabyte of transcript has a million entries,
//! so an entry is 32 bytes here, and the index by id is built only when an entry does not simply
//! follow the one before it.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use aldis_signal::message::{Message, Role};

/// What an entry says about its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Parent {
    /// Nothing: it follows the entry before it.
    Before,
    /// That it has none: a conversation begins here.
    None,
    /// This id.
    Key(u128),
}

/// One entry.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    /// The id, hashed; 0 if it has none.
    pub(super) key: u128,
    pub(super) parent: Parent,
    /// Tells entries with the same id apart, by what they say: the host writes an entry again with
    /// another version or session in it.
    pub(super) print: u32,
    /// The session, hashed; 0 if unknown.
    pub(super) session: u32,
    /// Part of a sub-agent's conversation.
    pub(super) sidechain: bool,
    /// Written by the host in the user's name.
    pub(super) meta: bool,
    /// Of another member of a team.
    pub(super) team: bool,
    /// Typed by a human.
    pub(super) typed: bool,
}

/// The entries of a file in order.
#[derive(Debug, Default)]
pub(super) struct Chain {
    nodes: Vec<Node>,
    by_key: HashMap<u128, u32, BuildHasherDefault<Mixed>>,
    /// How many nodes are in `by_key`.
    mapped: usize,
    /// Nodes whose parent was not seen before them.
    forward: Vec<(u32, u128)>,
    last_main: Option<u32>,
    after_copy: bool,
    /// The beginning of the file is not read.
    late: bool,
    /// The session that counts, hashed; 0 if that is the last entry's.
    session: u32,
}

#[derive(Debug)]
struct Node {
    key: u128,
    parent: u32,
    print: u32,
    session: u32,
    flags: u8,
}

impl Chain {
    /// Says that the entries to come are the last ones of a file, and which session counts.
    pub(super) fn begin_late(&mut self, session: u32) {
        self.late = true;
        self.session = session;
    }

    /// Returns whether an entry with this parent may begin a branch of its own: then it matters
    /// who wrote it.
    pub(super) fn may_branch(&mut self, parent: &[u8]) -> bool {
        if !self.late {
            return false;
        }
        let parent = key(parent);
        if self.nodes.last().is_some_and(|node| node.key == parent) {
            return false;
        }
        self.index();
        !self.by_key.contains_key(&parent)
    }

    /// Adds an entry and returns its number; `None` if this very entry is in the file already.
    pub(super) fn add(&mut self, entry: &Entry) -> Option<u32> {
        let number = u32::try_from(self.nodes.len()).ok()?;
        let last_key = self.nodes.last().map(|node| node.key);
        let follows = match entry.parent {
            Parent::Key(key) => last_key == Some(key),
            Parent::Before | Parent::None => false,
        };
        // An entry whose parent is the new entry before it cannot have been here earlier.
        if (!follows || self.after_copy)
            && let Some(earlier) = self.original(entry)
        {
            // A session that goes on in another one's file writes down what it took over.
            self.nodes[earlier].session = entry.session;
            self.after_copy = true;
            return None;
        }
        self.after_copy = false;
        let parent = self.parent(entry, number, follows);
        let flags = u8::from(entry.sidechain) * SIDECHAIN
            + u8::from(entry.meta) * META
            + u8::from(entry.team) * TEAM;
        let Entry { key, print, session, .. } = *entry;
        self.nodes.push(Node { key, parent, print, session, flags });
        if !entry.sidechain {
            self.last_main = Some(number);
        }
        Some(number)
    }

    /// Returns whether an entry was seen already, or is the first.
    pub(super) fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Finds the live branch.
    pub(super) fn live(mut self) -> Live {
        let forward = std::mem::take(&mut self.forward);
        if !forward.is_empty() {
            self.index();
        }
        for (number, key) in forward {
            if let Some(&parent) = self.by_key.get(&key).filter(|parent| **parent != number) {
                self.nodes[number as usize].parent = parent;
            }
        }
        let mut on_branch = vec![false; self.nodes.len()];
        let leaf = self.leaf();
        let mut next = leaf;
        while let Some(number) = next {
            let seen = std::mem::replace(&mut on_branch[number], true);
            next = if seen { None } else { self.up(number) };
        }
        let last = leaf.map_or(0, |leaf| self.nodes[leaf].session);
        let session = if self.session == 0 { last } else { self.session };
        Live { on_branch, nodes: self.nodes, session }
    }

    /// Returns the entry that this one is a copy of.
    fn original(&mut self, entry: &Entry) -> Option<usize> {
        if entry.key == 0 {
            return None;
        }
        self.index();
        let earlier = *self.by_key.get(&entry.key)? as usize;
        let node = &self.nodes[earlier];
        // Where one session is asked for, its own entry counts.
        let same = self.session == 0 || node.session == entry.session;
        (node.print == entry.print && same).then_some(earlier)
    }

    /// Returns whether an entry is of another session than the one that counts.
    fn is_foreign(&self, session: u32) -> bool {
        self.session != 0 && ![0, self.session].contains(&session)
    }

    fn parent(&mut self, entry: &Entry, number: u32, follows: bool) -> u32 {
        let before = self.last_main.filter(|_| !entry.sidechain).unwrap_or(NONE);
        match entry.parent {
            Parent::Before => before,
            Parent::None => NONE,
            Parent::Key(_) if follows => number.wrapping_sub(1),
            Parent::Key(key) => {
                self.index();
                self.by_key.get(&key).copied().unwrap_or_else(|| {
                    // Lost with a bad line, or still to come: a lost parent must not cut off the
                    // whole history. Where the history begins late, a prompt on an unknown entry went
                    // back to one before it, and what came since was taken back.
                    self.forward.push((number, key));
                    if self.late && entry.typed { NONE } else { before }
                })
            }
        }
    }

    /// Brings the index by id up to date.
    fn index(&mut self) {
        self.by_key.reserve(self.nodes.len() - self.mapped);
        for (number, node) in self.nodes.iter().enumerate().skip(self.mapped) {
            if node.key != 0 {
                self.by_key.insert(node.key, u32::try_from(number).unwrap_or(NONE));
            }
        }
        self.mapped = self.nodes.len();
    }

    fn up(&self, number: usize) -> Option<usize> {
        let parent = self.nodes[number].parent;
        (parent != NONE).then_some(parent as usize)
    }

    /// Returns the last leaf that is neither of a sub-agent nor of a team nor written by the host.
    ///
    /// A leaf written by the host stands for the entry it was written about: hook feedback at the
    /// end of the file must not make an older branch the live one.
    fn leaf(&self) -> Option<usize> {
        let mut is_parent = vec![false; self.nodes.len()];
        for node in &self.nodes {
            if node.parent != NONE {
                is_parent[node.parent as usize] = true;
            }
        }
        let mut best = None;
        for (number, node) in self.nodes.iter().enumerate().rev() {
            if best.is_some_and(|best| number <= best) {
                break;
            }
            let foreign = self.is_foreign(node.session);
            if is_parent[number] || foreign || node.flags & (SIDECHAIN | TEAM) != 0 {
                continue;
            }
            best = best.max(self.spoken_for(number));
        }
        best.or_else(|| (0..self.nodes.len()).rev().find(|number| !is_parent[*number]))
            .or_else(|| self.nodes.len().checked_sub(1))
    }

    fn spoken_for(&self, leaf: usize) -> Option<usize> {
        let mut number = leaf;
        for _ in 0..META_RUN_MAX {
            if self.nodes[number].flags & META == 0 {
                return Some(number);
            }
            number = self.up(number)?;
        }
        Some(number)
    }
}

/// The answer, once the whole file is known.
#[derive(Debug)]
pub(super) struct Live {
    on_branch: Vec<bool>,
    nodes: Vec<Node>,
    session: u32,
}

impl Live {
    /// Returns why an entry is not part of the conversation, if it is not.
    pub(super) fn dead(&self, number: u32) -> Option<&'static str> {
        let node = self.nodes.get(number as usize)?;
        if node.session != 0 && self.session != 0 && node.session != self.session {
            return Some("another session");
        }
        let on_branch = self.on_branch[number as usize] || node.flags & SIDECHAIN != 0;
        (!on_branch).then_some("rewound branch")
    }

    /// Marks a message that an entry says if it is not part of the conversation.
    pub(super) fn settle(&self, number: u32, message: &mut Message) {
        let origin = &mut message.origin;
        let why = match origin.role {
            Role::Subagent | Role::Tool => self.result_dead(number),
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
    fn result_dead(&self, number: u32) -> Option<&'static str> {
        let node = self.nodes.get(number as usize)?;
        self.dead(number).filter(|_| node.parent == NONE || self.dead(node.parent).is_some())
    }
}

/// Hashes an id. Ids are long and random, so a quick mix of all bytes is enough.
pub(super) fn key(id: &[u8]) -> u128 {
    let (mut a, mut b) = (id.len() as u64 ^ 0x9e37_79b9_7f4a_7c15, 0x2545_f491_4f6c_dd1d_u64);
    let mut mix = |word: u64| {
        a = (a ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
        b = (b.rotate_left(31) ^ word).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    };
    let (words, rest) = id.as_chunks::<8>();
    words.iter().for_each(|word| mix(u64::from_le_bytes(*word)));
    mix(rest.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    (u128::from(a ^ (b >> 32)) << 64 | u128::from(b ^ (a >> 29))) | 1
}

/// Tells what one entry says from what others with the same id say.
pub(super) fn print(words: &[u8]) -> u32 {
    let print = (mixed(words) >> 32) as u32 ^ words.len() as u32;
    print | 1 << 31
}

/// Mixes all bytes, in four strands that need not wait for each other.
fn mixed(bytes: &[u8]) -> u64 {
    const ODD: u64 = 0xff51_afd7_ed55_8ccd;
    let mut strands = [1, 2, 3, 4];
    let mut mix = |block: &[u8; 32]| {
        for (strand, word) in strands.iter_mut().zip(block.as_chunks().0) {
            *strand = (*strand ^ u64::from_le_bytes(*word)).wrapping_mul(ODD).rotate_left(29);
        }
    };
    let (blocks, rest) = bytes.as_chunks::<32>();
    blocks.iter().for_each(&mut mix);
    let mut last = [0; 32];
    last[..rest.len()].copy_from_slice(rest);
    mix(&last);
    strands.iter().fold(0, |mixed: u64, strand| (mixed ^ strand).wrapping_mul(ODD).rotate_left(29))
}

/// Keys are hashes already: the table takes them as they are.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        self.0 = key(bytes) as u64;
    }

    fn write_u128(&mut self, key: u128) {
        self.0 = (key >> 64) as u64;
    }
}

const NONE: u32 = u32::MAX;
const SIDECHAIN: u8 = 1;
const META: u8 = 2;
const TEAM: u8 = 4;
/// The host writes a few lines at a time; the branch is known also if there are more.
const META_RUN_MAX: usize = 64;
