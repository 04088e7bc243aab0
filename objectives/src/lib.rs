//! What an HPL run costs: models, calibration, real runs.

pub mod fit;
pub mod mcl;
pub mod netlib;
pub mod predict;
