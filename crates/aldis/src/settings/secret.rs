//! Codes that nobody can guess.

/// Makes a key of 256 bits, in hexadecimal.
pub(crate) fn key() -> Result<String, getrandom::Error> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
