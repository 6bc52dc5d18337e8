"""Online learning: after each confirmed sentence one small, guarded step."""

from camit.learning.learner import Knowledge, Lesson, OnlineLearner
from camit.learning.settings import PRESETS, LearningSettings, Preset

__all__ = ["PRESETS", "Knowledge", "LearningSettings", "Lesson", "OnlineLearner", "Preset"]
