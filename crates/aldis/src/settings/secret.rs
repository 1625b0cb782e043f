//! Names and codes that nobody can guess.

use aldis_store::RunId;

/// Letters that are easy to read and to say: no vowels, nothing that looks like something else.
const LETTERS: &[u8; 32] = b"23456789bcdfghjkmnpqrstvwxyzBCDF";
/// The letters of a run's name.
const ID_LENGTH: usize = 8;
/// The letters of a run token: 60 bits.
const TOKEN_LENGTH: usize = 12;

/// Makes a name for a new run.
pub(crate) fn run_id() -> Result<RunId, getrandom::Error> {
    // The letters are a subset of those that names may have.
    RunId::new(word(ID_LENGTH)?.to_ascii_lowercase()).map_err(|_| getrandom::Error::UNEXPECTED)
}

/// Makes a run token.
pub(crate) fn token() -> Result<String, getrandom::Error> {
    word(TOKEN_LENGTH)
}

fn word(length: usize) -> Result<String, getrandom::Error> {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}

/// Makes a key of 256 bits, in hexadecimal.
pub(crate) fn key() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
