"""Online learning: after each confirmed sentence one small, guarded step."""

from camit.learning.learner import PRESETS, Knowledge, LearningSettings, Lesson, OnlineLearner, Preset

__all__ = ["PRESETS", "Knowledge", "LearningSettings", "Lesson", "OnlineLearner", "Preset"]
