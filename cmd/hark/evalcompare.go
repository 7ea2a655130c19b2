package main

import "github.com/spf13/cobra"

func newEvalCompare(a *app) *cobra.Command { return &cobra.Command{Use: "compare"} }
func newEvalOwn(a *app) *cobra.Command     { return &cobra.Command{Use: "own"} }
