//! Refusal of emulated arithmetic.

use std::ffi::OsString;

use space::DeviceChoice;

/// A variable asks cuBLAS to compute in double precision by other units, whose results are not those of IEEE 754.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable}={value} lets cuBLAS emulate double precision, which HPL's rules do not allow; unset it")]
pub struct Emulated {
    /// The environment variable.
    pub variable: String,
    /// Its value.
    pub value: String,
}

/// Refuses a run on a GPU where the environment asks for emulation.
///
/// # Errors
/// [`Emulated`].
pub fn refuse_emulation(
    device: DeviceChoice,
    variables: impl IntoIterator<Item = (OsString, OsString)>,
) -> Result<(), Emulated> {
    let asks = |(name, value): &(String, String)| {
        let on = !matches!(value.trim(), "" | "0" | "default");
        on && (name.starts_with("CUBLAS_EMULATE_") || name == "CUBLAS_EMULATION_STRATEGY")
    };
    let text = |(name, value): (OsString, OsString)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    };
    match variables.into_iter().map(text).find(asks).filter(|_| device.is_gpu()) {
        Some((variable, value)) => Err(Emulated { variable, value }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emulation_is_refused_on_gpus() {
        let of = |device, name: &str, value: &str| {
            refuse_emulation(device, [("PATH".into(), "/bin".into()), (name.into(), value.into())])
        };
        let message = of(DeviceChoice::Cuda, "CUBLAS_EMULATE_DOUBLE_PRECISION", "1").unwrap_err().to_string();
        assert!(
            message.starts_with("CUBLAS_EMULATE_DOUBLE_PRECISION=1 ") && message.ends_with("unset it"),
            "{message}"
        );
        of(DeviceChoice::Cuda, "CUBLAS_EMULATION_STRATEGY", "eager").unwrap_err();
        of(DeviceChoice::Cuda, "CUBLAS_EMULATE_DOUBLE_PRECISION", "0").unwrap();
        of(DeviceChoice::None, "CUBLAS_EMULATE_DOUBLE_PRECISION", "1").unwrap();
    }
}
