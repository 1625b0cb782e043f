//! Which store is used: the user's own database, or one that many machines share.
//!
//! The address may hold a password: it is read here and shown by nobody.

use std::borrow::Cow;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aldis_store::{GroupStore, SqliteStore, Store, StoreError, Transfer};
#[cfg(feature = "postgres")]
use aldis_store::{PostgresAddress, PostgresStore};

use crate::error::CommandError;
use crate::failures;
use crate::settings::config;

/// The settings whose values are addresses.
const ADDRESSES: [&str; 2] = ["store.url", "store.direct_url"];
/// Another one that may hold a password.
const COLLECTOR: &str = "telemetry.otlp";
/// Names the store for one command; `ALDIS_STORE_URL`, as every setting has one, is the same.
const VARIABLES: [&str; 2] = ["ALDIS_STORE", "ALDIS_STORE_URL"];
const DIRECT_VARIABLES: [&str; 1] = ["ALDIS_STORE_DIRECT_URL"];
/// The password of an address that has none, as every PostgreSQL client takes it.
#[cfg(feature = "postgres")]
const PASSWORD: &str = "PGPASSWORD";

/// Where a store is.
#[derive(Clone, Debug)]
pub(crate) enum StorePlace {
    /// In a directory of this machine.
    Local(PathBuf),
    /// In a database that many machines share.
    #[cfg(feature = "postgres")]
    Shared(Box<PostgresAddress>),
}

/// An open store that a process may leave without tidying up.
pub(crate) struct OpenStore {
    store: Arc<dyn Store>,
    own: Own,
}

enum Own {
    Local(Arc<SqliteStore>),
    #[cfg(feature = "postgres")]
    Shared(Arc<PostgresStore>),
}

impl StorePlace {
    /// Returns the store that the environment or the user's settings name, else the one in this
    /// directory. A project's file has no say.
    ///
    /// # Errors
    ///
    /// Fails if the settings cannot be read, or the address is wrong.
    pub(crate) fn of(state_dir: &Path) -> Result<Self, CommandError> {
        let Some(url) = config::of_user_alone(ADDRESSES[0], &VARIABLES)? else {
            return Ok(Self::Local(state_dir.to_owned()));
        };
        let direct = config::of_user_alone(ADDRESSES[1], &DIRECT_VARIABLES)?;
        Self::shared(&url, direct.as_deref())
    }

    /// Returns the store that somebody named: the address of a database, or a directory.
    ///
    /// # Errors
    ///
    /// Fails if the address is wrong.
    pub(crate) fn named(text: &str) -> Result<Self, CommandError> {
        if text.contains("://") {
            return Self::shared(text, None);
        }
        Ok(Self::Local(text.into()))
    }

    #[cfg(feature = "postgres")]
    fn shared(url: &str, direct: Option<&str>) -> Result<Self, CommandError> {
        let mut address = PostgresAddress::parse(url)?;
        if let Some(direct) = direct {
            address = address.with_direct(PostgresAddress::parse(direct)?);
        }
        if let Ok(password) = std::env::var(PASSWORD) {
            address = address.with_password(&password);
        }
        Ok(Self::Shared(Box::new(address)))
    }

    #[cfg(not(feature = "postgres"))]
    fn shared(_: &str, _: Option<&str>) -> Result<Self, CommandError> {
        Err(CommandError::new("this program was built without PostgreSQL")
            .with_help("build it with the feature `postgres`, or unset store.url"))
    }

    /// Returns whether there is a store, without creating one. A shared one is taken to be there.
    pub(crate) fn exists(&self) -> bool {
        match self {
            Self::Local(directory) => SqliteStore::exists(directory),
            #[cfg(feature = "postgres")]
            Self::Shared(_) => true,
        }
    }

    /// Opens the store.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong with it.
    pub(crate) fn open(&self) -> Result<OpenStore, StoreError> {
        let own = match self {
            Self::Local(directory) => Own::Local(Arc::new(SqliteStore::open(directory)?)),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => {
                Own::Shared(Arc::new(PostgresStore::open((**address).clone())?))
            }
        };
        let store: Arc<dyn Store> = match &own {
            Own::Local(store) => store.clone(),
            #[cfg(feature = "postgres")]
            Own::Shared(store) => store.clone(),
        };
        Ok(OpenStore { store, own })
    }

    /// Opens the store for a process that writes much.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong with it.
    pub(crate) fn open_busy(&self) -> Result<Arc<dyn Store>, StoreError> {
        match self {
            Self::Local(directory) => Ok(Arc::new(GroupStore::open(directory)?)),
            #[cfg(feature = "postgres")]
            Self::Shared(_) => Ok(self.open()?.shared()),
        }
    }

    /// Looks for what cannot be in the store. Returns what was found, in words.
    ///
    /// # Errors
    ///
    /// Fails if the store cannot be read.
    pub(crate) fn check(&self) -> Result<Vec<String>, StoreError> {
        match self {
            Self::Local(directory) => match SqliteStore::open(directory)?.check() {
                Err(StoreError::Corrupt { detail, .. }) => Ok(vec![detail]),
                checked => checked.map(|()| Vec::new()),
            },
            #[cfg(feature = "postgres")]
            Self::Shared(address) => PostgresStore::open((**address).clone())?.check(),
        }
    }

    /// Brings the store up to date. Returns the version of its schema before and after.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong with it.
    pub(crate) fn migrate(&self) -> Result<(u32, u32), StoreError> {
        match self {
            Self::Local(directory) => SqliteStore::migrate(directory),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => PostgresStore::migrate((**address).clone()),
        }
    }

    /// Makes the directory for what is kept beside the store, ours alone.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong with it.
    pub(crate) fn prepare(&self, state_dir: &Path) -> Result<(), CommandError> {
        match self {
            // Opening the store is what creates the directory and checks that it is ours alone.
            Self::Local(directory) => drop(SqliteStore::open(directory)?),
            #[cfg(feature = "postgres")]
            Self::Shared(_) => {
                failures::create(state_dir)
                    .map_err(|error| CommandError::file(state_dir, &error))?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local(directory) => write!(f, "{}", directory.join("aldis.db").display()),
            #[cfg(feature = "postgres")]
            Self::Shared(address) => address.fmt(f),
        }
    }
}

impl OpenStore {
    /// Returns the store, for as long as anybody needs it.
    pub(crate) fn shared(self) -> Arc<dyn Store> {
        self.store
    }

    /// Returns the store, for taking runs out of it or into it.
    pub(crate) fn transfer(self) -> Arc<dyn Transfer> {
        match self.own {
            Own::Local(store) => store,
            #[cfg(feature = "postgres")]
            Own::Shared(store) => store,
        }
    }

    /// Returns the store for now.
    pub(crate) fn store(&self) -> Arc<dyn Store> {
        Arc::clone(&self.store)
    }

    /// Leaves without tidying up, for a process that has answered and wants to be gone.
    pub(crate) fn abandon(self) {
        drop(self.store);
        match self.own {
            Own::Local(store) => drop(Arc::into_inner(store).map(SqliteStore::abandon)),
            #[cfg(feature = "postgres")]
            Own::Shared(store) => drop(Arc::into_inner(store).map(PostgresStore::abandon)),
        }
    }
}

/// Returns why nothing can be stored, for somebody whose state directory this is.
pub(crate) fn problem(state_dir: &Path) -> Option<CommandError> {
    let place = match StorePlace::of(state_dir) {
        Ok(place) => place,
        Err(error) => return Some(error),
    };
    let probe = || place.open().and_then(|store| store.store().probe()).err().map(Into::into);
    place.exists().then(probe).flatten()
}

/// Says where runs are kept, if not in the state directory.
pub(crate) fn elsewhere(state_dir: &Path) -> String {
    match StorePlace::of(state_dir) {
        Ok(StorePlace::Local(_)) | Err(_) => String::new(),
        #[cfg(feature = "postgres")]
        Ok(shared @ StorePlace::Shared(_)) => format!("; runs are kept in {shared}"),
    }
}

/// Returns the value of a setting as people may see it.
pub(crate) fn shown<'t>(path: &str, value: &'t str) -> Cow<'t, str> {
    if path == COLLECTOR && value.contains('@') {
        return Cow::Borrowed("(not shown)");
    }
    if !ADDRESSES.contains(&path) {
        return Cow::Borrowed(value);
    }
    #[cfg(feature = "postgres")]
    if let Ok(address) = PostgresAddress::parse(value) {
        return Cow::Owned(address.to_string());
    }
    Cow::Borrowed("(not shown)")
}
